//! Figures as data, and their drawings: SVG, PNG, tables of their values.
//!
//! A [`Figure`] is the one description of which page, SVG and PNG files and CSV are made.

#[cfg(feature = "png")]
pub(crate) mod png;
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

/// Bars of one name, one for each category.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Their name in the legend.
    pub name: String,
    /// Height, and half the confidence interval; None where nothing was measured.
    pub values: Vec<Option<(f64, f64)>>,
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
    /// Groups of bars.
    Bars(Vec<String>, Vec<Bars>),
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
    /// Across; without meaning for bars and boxes, whose categories stand there.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Contents of the drawing.
    pub plot: Plot,
}

impl Figure {
    /// A figure of what is given.
    pub fn new((id, title): (&str, &str), (x, y): (Axis, Axis), plot: Plot) -> Figure {
        Figure { id: id.into(), title: title.into(), x, y, plot }
    }
}
