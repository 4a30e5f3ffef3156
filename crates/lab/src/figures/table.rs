//! A figure's data as a table, for other programs: CSV, and Parquet with the feature `parquet`.

use std::fmt::Write;

use crate::figures::{Figure, Plot};
use crate::statistics::Estimate;

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Names.
    Text(Vec<String>),
    /// Values; what is no number was not measured.
    Number(Vec<f64>),
}

/// Columns of equal length, and their names.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// In order.
    pub columns: Vec<(String, Column)>,
}

impl Table {
    /// The data of `figure`: one row a value, with its series.
    pub fn of(figure: &Figure) -> Table {
        let y = &figure.y.label;
        match &figure.plot {
            Plot::Lines(lines) => {
                let points = || lines.iter().flat_map(|line| &line.points);
                let names = lines
                    .iter()
                    .flat_map(|line| line.points.iter().map(|_| line.name.clone()))
                    .collect();
                Table::new([
                    ("series", Column::Text(names)),
                    (&figure.x.label, Column::Number(points().map(|point| point[0]).collect())),
                    (y, Column::Number(points().map(|point| point[1]).collect())),
                ])
            }
            Plot::Dots(categories, series) => {
                let mut rows = Rows::default();
                for dots in series {
                    for (category, values) in categories.iter().zip(&dots.values) {
                        if let Some(of) = Estimate::of(values) {
                            let half = of.half_width.unwrap_or(0.0);
                            rows.push(category, &dots.name, &[of.mean, half]);
                        }
                    }
                }
                rows.table(&[y, "ci95"])
            }
            Plot::Boxes(categories, series) => {
                let mut rows = Rows::default();
                for boxes in series {
                    for (category, five) in categories.iter().zip(&boxes.values) {
                        if let Some(five) = five {
                            rows.push(category, &boxes.name, five);
                        }
                    }
                }
                rows.table(&["least", "p25", "median", "p75", "greatest"])
            }
        }
    }

    fn new<const N: usize>(columns: [(&str, Column); N]) -> Table {
        let columns = columns.map(|(name, column)| (name.to_string(), column));
        Table { columns: columns.into() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| match column {
            Column::Text(values) => values.len(),
            Column::Number(values) => values.len(),
        })
    }

    /// Comma-separated, text and names in quotes (RFC 4180).
    pub fn csv(&self) -> String {
        let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let names: Vec<String> = self.columns.iter().map(|(name, _)| quote(name)).collect();
        let mut out = names.join(",") + "\n";
        for row in 0..self.rows() {
            for (n, (_, column)) in self.columns.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                let _ = match column {
                    Column::Text(values) => write!(out, "{}", quote(&values[row])),
                    Column::Number(values) if values[row].is_nan() => Ok(()),
                    Column::Number(values) => write!(out, "{}", values[row]),
                };
            }
            out.push('\n');
        }
        out
    }

    /// A Parquet file of one row group.
    #[cfg(feature = "parquet")]
    pub fn parquet(&self) -> parquet::errors::Result<Vec<u8>> {
        use parquet::basic::{LogicalType, Repetition, Type as Physical};
        use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
        use parquet::file::writer::SerializedFileWriter;
        use parquet::schema::types::Type;
        use std::sync::Arc;

        let field = |(name, column): &(String, Column)| {
            let (physical, logical) = match column {
                Column::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Column::Number(_) => (Physical::DOUBLE, None),
            };
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(logical);
            field.build().map(Arc::new)
        };
        let fields = self.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("figure").with_fields(fields).build()?;
        let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default())?;
        let mut group = file.next_row_group()?;
        for (_, column) in &self.columns {
            let Some(mut writer) = group.next_column()? else { break };
            match column {
                Column::Text(values) => {
                    let values: Vec<ByteArray> =
                        values.iter().map(|value| value.as_str().into()).collect();
                    writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                }
                Column::Number(values) => {
                    writer.typed::<DoubleType>().write_batch(values, None, None)?;
                }
            }
            writer.close()?;
        }
        group.close()?;
        file.into_inner()
    }
}

/// Rows of a category, a series and some values.
#[derive(Default)]
struct Rows {
    categories: Vec<String>,
    series: Vec<String>,
    values: Vec<Vec<f64>>,
}

impl Rows {
    fn push(&mut self, category: &str, series: &str, values: &[f64]) {
        self.categories.push(category.into());
        self.series.push(series.into());
        self.values.resize(values.len(), Vec::new());
        for (column, value) in self.values.iter_mut().zip(values) {
            column.push(*value);
        }
    }

    fn table(self, names: &[&str]) -> Table {
        let mut columns = vec![
            ("category".to_string(), Column::Text(self.categories)),
            ("series".to_string(), Column::Text(self.series)),
        ];
        // Where nothing was measured, there are names and no rows.
        let values = self.values.into_iter().chain(std::iter::repeat_with(Vec::new));
        columns.extend(
            names.iter().zip(values).map(|(name, all)| (name.to_string(), Column::Number(all))),
        );
        Table { columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Axis, Dots, Line};

    #[test]
    fn every_value_is_a_row() {
        let line = |name: &str| Line { name: name.into(), points: vec![[0.0, 1.5], [1.0, 2.0]] };
        let plot = Plot::Lines(vec![line("a"), line("say \"b\"")]);
        let axes = (Axis::linear("time (s)"), Axis::linear("ms"));
        let table = Table::of(&Figure::new(("f", "F"), axes, plot));
        assert_eq!(
            table.csv(),
            "\"series\",\"time (s)\",\"ms\"\n\"a\",0,1.5\n\"a\",1,2\n\
             \"say \"\"b\"\"\",0,1.5\n\"say \"\"b\"\"\",1,2\n"
        );
    }

    #[test]
    fn what_was_not_measured_has_no_row() {
        let values = vec![vec![], vec![9.5, 9.5]];
        let dots = Dots { name: "down".into(), values, ..Dots::default() };
        let plot = Plot::Dots(vec!["cake".into(), "sfq".into()], vec![dots]);
        let axes = (Axis::linear(""), Axis::linear("Mbit/s"));
        let table = Table::of(&Figure::new(("f", "F"), axes.clone(), plot));
        let head = "\"category\",\"series\",\"Mbit/s\",\"ci95\"\n";
        assert_eq!(table.csv(), format!("{head}\"sfq\",\"down\",9.5,0\n"));
        let nothing = Plot::Dots(vec!["cake".into()], Vec::new());
        assert_eq!(Table::of(&Figure::new(("f", "F"), axes, nothing)).csv(), head);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn a_parquet_file_can_be_read_again() {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        let line = Line { name: "a".into(), points: vec![[0.0, 1.5], [1.0, 2.0]] };
        let axes = (Axis::linear("time (s)"), Axis::linear("ms"));
        let table = Table::of(&Figure::new(("f", "F"), axes, Plot::Lines(vec![line])));
        let bytes = bytes::Bytes::from(table.parquet().expect("a file in memory"));
        let file = SerializedFileReader::new(bytes).expect("a Parquet file");
        let rows: Vec<String> = file
            .get_row_iter(None)
            .expect("rows")
            .map(|row| row.expect("a row").to_string())
            .collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].contains("1.5") && rows[1].contains("time (s): 1"), "{rows:?}");
    }
}
