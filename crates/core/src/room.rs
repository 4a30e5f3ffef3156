//! Changes of vectors whose room was reserved: they do not panic, and do not allocate either unless
//! a clone has less room than its original.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// [`Vec::push`]; None if there is no room for it.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) -> Option<()> {
    if list.len() == list.capacity() {
        list.try_reserve(1).ok()?;
    }
    if list.len() < list.capacity() {
        list.push(item);
        return Some(());
    }
    None
}

/// Moves all of `list` into the memory of `spare`, if that has more room, and exchanges the two.
pub(crate) fn take_larger<T>(list: &mut Vec<T>, spare: &mut Vec<T>) {
    if spare.capacity() <= list.capacity() {
        return;
    }
    spare.clear();
    for item in list.drain(..) {
        let moved = push(spare, item);
        debug_assert!(moved.is_some(), "there is more room");
    }
    core::mem::swap(list, spare);
}

/// [`VecDeque::push_back`]; None if there is no room for it.
#[inline]
pub(crate) fn push_back<T>(queue: &mut VecDeque<T>, item: T) -> Option<()> {
    if queue.len() == queue.capacity() {
        queue.try_reserve(1).ok()?;
    }
    if queue.len() < queue.capacity() {
        queue.push_back(item);
        return Some(());
    }
    None
}

/// [`Vec::insert`]; None if there is no room for it, or not as many items before it.
pub(crate) fn insert<T: Copy>(list: &mut Vec<T>, at: usize, item: T) -> Option<()> {
    if at > list.len() {
        return None;
    }
    push(list, item)?;
    let mut carried = item;
    list.iter_mut().skip(at).for_each(|place| core::mem::swap(place, &mut carried));
    Some(())
}

/// [`Vec::remove`]; None if there is no such item.
pub(crate) fn remove<T: Copy>(list: &mut Vec<T>, at: usize) -> Option<T> {
    let moved = list.get_mut(at..)?;
    let mut carried = *moved.last()?;
    moved.iter_mut().rev().for_each(|place| core::mem::swap(place, &mut carried));
    list.pop();
    Some(carried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_where_there_is_none_and_not_before() {
        let mut queue = crate::memory::reserved_queue(3).unwrap();
        let room = queue.capacity();
        assert!(room >= 3);
        for n in 0..10 * room {
            assert_eq!((push_back(&mut queue, n), queue.len()), (Some(()), n + 1));
            assert_eq!(queue.capacity() > room, n >= room);
        }
        let mut list = Vec::new();
        assert!((0..9).all(|n| push(&mut list, n).is_some()) && list.len() == 9);
    }

    #[test]
    fn as_the_methods_that_may_panic() {
        let (mut list, mut model) = (std::vec![1, 2, 3], std::vec![1, 2, 3]);
        for at in [0, 3, 2, 6] {
            assert_eq!(insert(&mut list, at, 10 + at), Some(()));
            model.insert(at, 10 + at);
        }
        for at in [6, 0, 2] {
            assert_eq!(remove(&mut list, at), Some(model.remove(at)));
        }
        assert_eq!(list, model);
        assert_eq!((remove(&mut list, 4), remove(&mut Vec::<u8>::new(), 0)), (None, None));
    }
}
