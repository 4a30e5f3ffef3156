//! `bindgen IN.wasm OUT-DIRECTORY NAME`: a module that `wasm-bindgen` has prepared, with the
//! JavaScript and the types that call it.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, name] = arguments.as_slice() else {
        eprintln!("bindgen: expected IN.wasm OUT-DIRECTORY NAME");
        return ExitCode::from(2);
    };
    let made = Bindgen::new()
        .input_path(input)
        .out_name(name)
        .remove_name_section(true)
        .remove_producers_section(true)
        .web(true)
        .and_then(|bindgen| bindgen.typescript(true).generate(output));
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindgen: {input}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
