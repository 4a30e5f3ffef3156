//! Statistics over repetitions: mean, 95 % confidence interval, quantiles.
//!
//! Repetitions differ by their seed only and are independent, so the interval is Student's:
//! mean ± t(0.975, n − 1) · s / √n. With one repetition there is none.

use std::fmt;

use serde::Serialize;

/// A mean and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; None for a single value.
    pub half_width: Option<f64>,
    /// Standard deviation of the sample; zero for a single value.
    pub deviation: f64,
    /// Number of values.
    pub n: usize,
}

impl Estimate {
    /// Of `values`; None if there are none or one of them is no number.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let n = values.len();
        if n == 0 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Some(Estimate { mean, half_width: None, deviation: 0.0, n });
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (n - 1) as f64).sqrt();
        let half_width = Some(student_975(n - 1) * deviation / (n as f64).sqrt());
        Some(Estimate { mean, half_width, deviation, n })
    }
}

/// The interval to two digits, and the mean as far as that supports it.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Decimal places of so many significant digits; negative before the point.
        let places =
            |value: f64, digits: i32| digits - 1 - value.abs().max(1e-9).log10().floor() as i32;
        match self.half_width.map(|half| (half, places(half, 2))) {
            // An interval beyond the mean's fifth digit is none.
            Some((half, least)) if half > 0.0 && least <= places(self.mean, 5) => {
                let unit = 10f64.powi(-least);
                let [mean, half] = [self.mean, half].map(|one| (one / unit).round() * unit);
                let shown = least.max(0) as usize;
                write!(f, "{mean:.shown$} ± {half:.shown$}")
            }
            Some(_) => write!(f, "{} ± 0", number(self.mean)),
            None => f.write_str(&number(self.mean)),
        }
    }
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom.
///
/// Cornish-Fisher expansion about the normal quantile (Abramowitz and Stegun, 26.7.5), exact to
/// three digits from 5 degrees on; below, the tabulated values.
pub fn student_975(freedom: usize) -> f64 {
    const SMALL: [f64; 4] = [12.7062, 4.3027, 3.1824, 2.7764];
    if freedom == 0 {
        return f64::INFINITY;
    }
    if let Some(value) = SMALL.get(freedom - 1) {
        return *value;
    }
    let (z, v) = (1.959_964_f64, freedom as f64);
    let g1 = (z.powi(3) + z) / 4.0;
    let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let g3 = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    let g4 = (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5)
        - 1920.0 * z.powi(3)
        - 945.0 * z)
        / 92_160.0;
    z + g1 / v + g2 / v.powi(2) + g3 / v.powi(3) + g4 / v.powi(4)
}

/// The value below which the share `q` (0 to 1) lies, interpolated; None if there are no values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64))
}

/// Least, quartiles and greatest.
pub fn five_numbers(values: &[f64]) -> Option<[f64; 5]> {
    let mut numbers = [0.0; 5];
    for (number, q) in numbers.iter_mut().zip([0.0, 0.25, 0.5, 0.75, 1.0]) {
        *number = quantile(values, q)?;
    }
    Some(numbers)
}

/// A number with three significant digits, more where whole.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value == 0.0 => "0".into(),
        _ if size >= 99.95 => format!("{value:.0}"),
        _ if size >= 9.995 => format!("{value:.1}"),
        _ if size >= 0.9995 => format!("{value:.2}"),
        _ if size >= 0.000_995 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_the_digits_that_its_interval_supports() {
        let text = |mean: f64, half: f64| {
            Estimate { mean, half_width: Some(half), deviation: 0.0, n: 9 }.to_string()
        };
        assert_eq!(text(51.7423, 0.3123), "51.74 ± 0.31");
        assert_eq!(text(48.6, 12.34), "49 ± 12");
        assert_eq!(text(12_345.0, 678.0), "12350 ± 680");
        assert_eq!(text(9.5, 0.000_01), "9.50 ± 0");
        assert_eq!(text(9.5, 0.0), "9.50 ± 0");
    }

    #[test]
    fn the_quantiles_of_student_are_those_of_the_tables() {
        let tables = [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (6, 2.447),
            (9, 2.262),
            (14, 2.145),
            (19, 2.093),
            (30, 2.042),
            (60, 2.000),
            (99, 1.984),
            (120, 1.980),
        ];
        for (freedom, value) in tables {
            let ours = student_975(freedom);
            assert!((ours - value).abs() < 1.5e-3, "{freedom}: {ours} against {value}");
        }
    }

    #[test]
    fn an_interval_is_that_of_the_textbook() {
        let estimate = Estimate::of(&[9.0, 10.0, 11.0, 10.0]).expect("values");
        assert_eq!(estimate.mean, 10.0);
        let half = estimate.half_width.expect("four values");
        assert!((half - 3.1824 * 0.816_496_6 / 2.0).abs() < 1e-6, "{half}");
        assert_eq!(Estimate::of(&[3.0]).and_then(|one| one.half_width), None);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn quantiles_are_interpolated() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.5), Some(2.5));
        assert_eq!(five_numbers(&values), Some([1.0, 1.75, 2.5, 3.25, 4.0]));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
