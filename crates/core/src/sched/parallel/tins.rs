//! One of something for each tin.

use alloc::boxed::Box;
use core::ops::{Index, IndexMut};

/// Most tins of a queue.
pub const MOST_TINS: usize = 8;

/// As many as there may be tins. Every index finds one, so looking up cannot fail.
#[derive(Debug, Default)]
pub struct ByTin<Array>(pub Array);

impl<T> Index<usize> for ByTin<[T; MOST_TINS]> {
    type Output = T;

    fn index(&self, tin: usize) -> &T {
        &self.0[tin % MOST_TINS]
    }
}

impl<T> Index<usize> for ByTin<Box<[T; MOST_TINS]>> {
    type Output = T;

    fn index(&self, tin: usize) -> &T {
        &self.0[tin % MOST_TINS]
    }
}

impl<T> IndexMut<usize> for ByTin<Box<[T; MOST_TINS]>> {
    fn index_mut(&mut self, tin: usize) -> &mut T {
        &mut self.0[tin % MOST_TINS]
    }
}
