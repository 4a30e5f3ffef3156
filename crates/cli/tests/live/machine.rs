//! Rights to the machine: of one test alone, or of some beside each other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Tests beside each other at once.
const MOST: usize = 3;

/// Tests that run, and tests that wait.
struct Tests {
    alone: bool,
    beside_others: usize,
    waiting_for_a_part: usize,
}

static TESTS: Mutex<Tests> =
    Mutex::new(Tests { alone: false, beside_others: 0, waiting_for_a_part: 0 });
static CHANGED: Condvar = Condvar::new();

/// A right to the machine, as long as it lives.
pub struct Right {
    is_alone: bool,
}

fn tests() -> MutexGuard<'static, Tests> {
    TESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn once(mut tests: MutexGuard<'static, Tests>, right: Right) -> Right {
    let is_free = |tests: &Tests| match right.is_alone {
        true => tests.beside_others + tests.waiting_for_a_part == 0,
        false => tests.beside_others < MOST,
    };
    while tests.alone || !is_free(&tests) {
        tests = CHANGED.wait(tests).unwrap_or_else(PoisonError::into_inner);
    }
    match right.is_alone {
        true => tests.alone = true,
        false => {
            tests.waiting_for_a_part -= 1;
            tests.beside_others += 1;
        }
    }
    right
}

/// The machine for a test that measures closely: when nobody wants a part of it.
pub fn alone() -> Right {
    once(tests(), Right { is_alone: true })
}

/// A part of it, for a test that only looks or measures a slow line.
pub fn beside_others() -> Right {
    let mut tests = tests();
    tests.waiting_for_a_part += 1;
    once(tests, Right { is_alone: false })
}

impl Drop for Right {
    fn drop(&mut self) {
        let mut tests = tests();
        match self.is_alone {
            true => tests.alone = false,
            false => tests.beside_others -= 1,
        }
        CHANGED.notify_all();
    }
}
