//! Parallel queues: a line for each transmit queue of a device, which share one rate and one
//! fairness (`simnel_core::sched::parallel`).
//!
//! C makes a discipline of each line, with a lock of its own, below a root that holds no packets.
//! A change is prepared for all lines before the first takes it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::c_void;

use simnel_core::memory::reserved;
use simnel_core::qdisc::cake::Member;
use simnel_core::qdisc::{Config, ConfigError};
use simnel_core::sched::parallel::Timing;

use crate::line::{refused, Line, Message, Surroundings};
use crate::settings::Request;

/// Lines for the transmit queues of a device, which C takes one by one.
pub struct Lines(Vec<Line>);

/// True if a request is one for parallel queues.
///
/// # Safety
/// The request's pointers must be to what it says.
#[no_mangle]
pub unsafe extern "C" fn simnel_is_parallel(request: &Request) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { request.is_parallel() }.into()
}

/// Lines for `count` transmit queues as a request asks for them; null with a message if they cannot
/// be. May wait for memory: not under a lock.
///
/// # Safety
/// The request's pointers must be to what it says.
#[no_mangle]
pub unsafe extern "C" fn simnel_create_parallel(
    request: &Request,
    surroundings: &Surroundings,
    count: u32,
    message: &mut Message,
) -> *mut Lines {
    let device = surroundings.device(request);
    // SAFETY: the caller's promise.
    let made = unsafe { request.read(None, &device) }.and_then(|(config, form)| {
        let Config::Cake(params) = &config else {
            return Err(refused(&ConfigError::OtherDiscipline));
        };
        let members = Member::all(params, &device, count as usize, &Timing::KERNEL);
        let members = members.map_err(|error| refused(&error))?;
        let mut lines = reserved(members.len()).map_err(|error| refused(&error.into()))?;
        let line = |member| Line::new(Box::new(member), form, &device, surroundings);
        lines.extend(members.into_iter().map(line).rev());
        Ok(lines)
    });
    match made {
        Ok(lines) => Box::into_raw(Box::new(Lines(lines))),
        Err(refusal) => {
            message.tell(&refusal);
            core::ptr::null_mut()
        }
    }
}

/// The line of the next transmit queue, with C's own pointer for it; null after the last one.
#[no_mangle]
pub extern "C" fn simnel_take_line(lines: &mut Lines, context: *mut c_void) -> *mut Line {
    let Some(mut line) = lines.0.pop() else { return core::ptr::null_mut() };
    line.owner.context = context;
    Box::into_raw(Box::new(line))
}

/// Frees lines that were not taken. Not under a lock.
///
/// # Safety
/// `lines` must be null or come from [`simnel_create_parallel`], and not be used again.
#[no_mangle]
pub unsafe extern "C" fn simnel_lines_free(lines: *mut Lines) {
    if !lines.is_null() {
        // SAFETY: it was made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(lines) });
    }
}
