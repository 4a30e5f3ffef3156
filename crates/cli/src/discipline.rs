//! From `tc` words to a running discipline: the one place that knows them all.

use simnel_core::qdisc::Device;
use simnel_lab::golden::Subject;

/// Makes the discipline that `words` describe, or says in a line why it cannot.
pub fn build(words: &[String], _device: &Device) -> Result<Box<dyn Subject>, String> {
    Err(format!("there is no discipline `{}`", words.join(" ")))
}
