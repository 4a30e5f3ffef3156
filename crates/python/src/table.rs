//! Arrow tables, handed over through the C stream interface (`__arrow_c_stream__`): polars, pandas,
//! pyarrow and DuckDB read them where they lie.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyFloat, PyInt, PyList};

use crate::error::Error;

/// The capsule's name in the Arrow PyCapsule interface.
const STREAM: &CStr = c"arrow_array_stream";

/// Columns that a table names when it is shown in a line.
const SHOWN: usize = 6;

/// Columns of equal length.
#[pyclass(frozen, module = "simnel._simnel")]
pub struct Table(RecordBatch);

/// Columns on the way to a table.
#[derive(Default)]
pub struct Columns(Vec<(Field, ArrayRef)>);

impl Columns {
    /// Adds a column of words.
    pub fn words<W: AsRef<str>>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = Option<W>>,
    ) {
        let mut builder = StringBuilder::new();
        values.into_iter().for_each(|value| builder.append_option(value));
        self.add(name, Arc::new(builder.finish()));
    }

    /// Adds a column of whole numbers.
    pub fn whole(&mut self, name: &str, values: impl IntoIterator<Item = Option<i64>>) {
        self.add(name, Arc::new(Int64Array::from_iter(values)));
    }

    /// Adds a column of numbers.
    pub fn numbers(&mut self, name: &str, values: impl IntoIterator<Item = Option<f64>>) {
        self.add(name, Arc::new(Float64Array::from_iter(values)));
    }

    fn add(&mut self, name: &str, array: ArrayRef) {
        self.0.push((Field::new(name, array.data_type().clone(), true), array));
    }

    /// The table; an error if columns differ in length.
    pub fn table(self) -> PyResult<Table> {
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = self.0.into_iter().unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        batch.map(Table).map_err(|error| Error::new_err(error.to_string()))
    }
}

#[pymethods]
impl Table {
    #[new]
    fn new(columns: &Bound<'_, PyDict>) -> PyResult<Table> {
        let mut made = Columns::default();
        for (name, values) in columns.iter() {
            let (name, values) = (name.extract::<String>()?, values.cast_into::<PyList>()?);
            let known: Vec<_> = values.iter().filter(|value| !value.is_none()).collect();
            if known.iter().all(|value| value.is_instance_of::<PyInt>()) && !known.is_empty() {
                made.whole(&name, values.extract::<Vec<Option<i64>>>()?);
            } else if known
                .iter()
                .all(|v| v.is_instance_of::<PyFloat>() || v.is_instance_of::<PyInt>())
            {
                made.numbers(&name, values.extract::<Vec<Option<f64>>>()?);
            } else {
                made.words(&name, values.extract::<Vec<Option<String>>>()?);
            }
        }
        made.table()
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer that asks for other types gets ours, as the interface allows.
        drop(requested_schema);
        let batches: Vec<Result<RecordBatch, ArrowError>> = vec![Ok(self.0.clone())];
        let reader: Box<dyn RecordBatchReader + Send> =
            Box::new(RecordBatchIterator::new(batches, self.0.schema()));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    // Without these two, Python would ask for the column `0`.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, self.columns())?.try_iter()?.into_any())
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.column_by_name(name).is_some()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.0.column_by_name(name).ok_or_else(|| {
            let names = self.columns().join(", ");
            Error::new_err(format!("the table has no column `{name}`; expected one of {names}"))
        })?;
        let list = match column.data_type() {
            DataType::Int64 => {
                PyList::new(py, column.as_primitive::<Int64Type>().iter().collect::<Vec<_>>())
            }
            DataType::Float64 => {
                PyList::new(py, column.as_primitive::<Float64Type>().iter().collect::<Vec<_>>())
            }
            DataType::Utf8 => PyList::new(py, column.as_string::<i32>().iter().collect::<Vec<_>>()),
            other => return Err(PyTypeError::new_err(format!("a column of {other}"))),
        };
        Ok(list?.into_any())
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for name in self.columns() {
            dict.set_item(&name, self.__getitem__(py, &name)?)?;
        }
        Ok(dict)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Table>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        let class = slf.get_type().into_any();
        Ok((class, (slf.get().to_dict(slf.py())?,)))
    }

    fn to_arrow<'py>(slf: &Bound<'py, Table>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    fn to_polars<'py>(slf: &Bound<'py, Table>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    fn to_pandas<'py>(slf: &Bound<'py, Table>) -> PyResult<Bound<'py, PyAny>> {
        Table::to_arrow(slf)?.call_method0("to_pandas")
    }

    fn __repr__(&self) -> String {
        let columns = self.columns();
        let more = if columns.len() > SHOWN { ", …" } else { "" };
        let first = columns[..columns.len().min(SHOWN)].join(", ");
        let (rows, columns) = (self.0.num_rows(), columns.len());
        format!("<simnel.Table: {rows} rows, {columns} columns: {first}{more}>")
    }
}
