//! Figures as data, and their drawings: SVG, PNG, tables of their values.
//!
//! A [`Figure`] is the one description of which page, SVG and PNG files and CSV are made.

#[cfg(feature = "png")]
pub(crate) mod png;
pub mod styles;
pub mod svg;
pub mod table;

/// Points of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Coordinates.
    pub points: Vec<[f64; 2]>,
}

/// Runs of one name as dots, for each category.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dots {
    /// Their name in the legend.
    pub name: String,
    /// A value a run, category by category; empty where nothing was measured.
    pub values: Vec<Vec<f64>>,
    /// Names of each category's measures, where statements are made about them; else empty.
    pub measures: Vec<String>,
    /// Statements about each category; empty where there are none.
    pub stated: Vec<Vec<Stated>>,
}

/// A statement about a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stated {
    /// The value, if one is stated and not only a range.
    pub value: Option<f64>,
    /// Least and greatest value within which the statement holds; infinite where it has no end.
    pub within: (f64, f64),
    /// True if the range follows from the means of other runs, with which it is compared.
    pub compared: bool,
}

/// Boxes of one name, one for each category: least, quartiles, greatest.
#[derive(Clone, Debug, PartialEq)]
pub struct Boxes {
    /// Their name in the legend.
    pub name: String,
    /// The five numbers; None where nothing was measured.
    pub values: Vec<Option<[f64; 5]>>,
}

/// Contents of the drawing.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Time series, sweeps, cumulative distributions.
    Lines(Vec<Line>),
    /// Groups of runs.
    Dots(Vec<String>, Vec<Dots>),
    /// Groups of boxes.
    Boxes(Vec<String>, Vec<Boxes>),
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Logarithmic.
    pub log: bool,
    /// Range that it shows, whatever lies beyond; None: everything.
    pub limits: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.into(), log: false, limits: None }
    }

    /// As it is, but it ends at these values.
    pub fn within(self, least: f64, most: f64) -> Axis {
        Axis { limits: Some((least, most)), ..self }
    }

    /// As it is, and it shows everything.
    pub fn whole(self) -> Axis {
        Axis { limits: None, ..self }
    }

    /// A logarithmic axis.
    pub fn log(label: &str) -> Axis {
        Axis { label: label.into(), log: true, limits: None }
    }
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name for files: letters, digits, hyphens.
    pub id: String,
    /// Its subject.
    pub title: String,
    /// Across; without meaning for dots and boxes, whose categories stand there.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Contents of the drawing.
    pub plot: Plot,
}

impl Axis {
    /// The unit of its label: what stands in parentheses, or all of it.
    pub fn unit(&self) -> &str {
        let inside = self.label.rsplit_once('(').map(|(_, rest)| rest.trim_end_matches(')'));
        inside.unwrap_or(&self.label)
    }
}

impl Figure {
    /// A figure of what is given.
    pub fn new((id, title): (&str, &str), (x, y): (Axis, Axis), plot: Plot) -> Figure {
        Figure { id: id.into(), title: title.into(), x, y, plot }
    }
}
