//! Buffers for frames: one mapping cut into chunks, a frame being a chain of them.
//!
//! An ordinary frame takes one chunk, a super-packet up to [`CHUNKS_PER_FRAME`]; so memory follows
//! the bytes held, not the number of packets times 64 KB. Chunks are reused last in, first out, and
//! the mapping is touched only as far as it was ever filled.
//!
//! Invariant: a chunk is in the free list, in one chain, or in one receive slot, and nowhere else.

use std::ptr::{self, NonNull};

use rustix::mm::{mmap_anonymous, munmap, MapFlags, ProtFlags};

use super::error::FrameError;

/// Bytes of a chunk: a full Ethernet frame with its headers fits one.
pub(crate) const CHUNK_BYTES: usize = 2048;

/// Chunks of the largest frame: 64 KB of IP, Ethernet and VLAN headers, and the virtio header.
pub(crate) const CHUNKS_PER_FRAME: usize = 33;

/// Frames handed to or taken from the kernel in one call.
pub(crate) const BATCH: usize = 32;

/// 512 MiB a direction. Beyond, frames wait in the socket's buffer, and the kernel counts those
/// that it must refuse.
pub(crate) const MAX_CHUNKS: usize = 256 * 1024;

/// Chunks of a batch being received and of one being sent.
const STANDING_CHUNKS: usize = 2 * BATCH * CHUNKS_PER_FRAME;

const NIL: u32 = u32::MAX;

/// A pool of chunks.
#[derive(Debug)]
pub(crate) struct Pool {
    memory: NonNull<u8>,
    /// Successor of each chunk in its chain, or in the free list.
    next: Box<[u32]>,
    free: u32,
    /// Chunks from here on were never used.
    fresh: u32,
}

// SAFETY: the pool owns its mapping and hands out pointers only through `&mut self` or by index.
unsafe impl Send for Pool {}

impl Pool {
    /// A pool of `chunks` chunks for queued frames, at most [`MAX_CHUNKS`]. A batch on its way in
    /// and one on its way out have chunks besides.
    pub(crate) fn new(chunks: usize) -> Result<Pool, FrameError> {
        let chunks = chunks.min(MAX_CHUNKS) + STANDING_CHUNKS;
        let bytes = chunks * CHUNK_BYTES;
        // SAFETY: a fresh anonymous private mapping; no existing memory is involved.
        // MAP_NORESERVE: limits are worst cases, pages count when they are touched.
        let memory = unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags)
        };
        let memory = memory.ok().and_then(|start| NonNull::new(start.cast()));
        let memory = memory.ok_or(FrameError::Memory { megabytes: bytes >> 20 })?;
        Ok(Pool { memory, next: vec![NIL; chunks].into_boxed_slice(), free: NIL, fresh: 0 })
    }

    /// Takes a chunk, or None if all are in use.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u32> {
        if self.free != NIL {
            let chunk = self.free;
            self.free = self.next[chunk as usize];
            self.next[chunk as usize] = NIL;
            Some(chunk)
        } else if (self.fresh as usize) < self.next.len() {
            self.fresh += 1;
            Some(self.fresh - 1)
        } else {
            None
        }
    }

    /// Makes `chunks`, in their order, one frame's chain.
    #[inline]
    pub(crate) fn chain(&mut self, chunks: &[u32]) {
        for pair in chunks.windows(2) {
            self.next[pair[0] as usize] = pair[1];
        }
        if let Some(&last) = chunks.last() {
            self.next[last as usize] = NIL;
        }
    }

    /// The chunk after `chunk` in its chain.
    #[inline]
    pub(crate) fn following(&self, chunk: u32) -> Option<u32> {
        let next = self.next[chunk as usize];
        (next != NIL).then_some(next)
    }

    /// Gives a whole chain back.
    #[inline]
    pub(crate) fn release(&mut self, first: u32) {
        let mut last = first;
        while let Some(next) = self.following(last) {
            last = next;
        }
        self.next[last as usize] = self.free;
        self.free = first;
    }

    /// Address of chunk `chunk`.
    #[inline]
    pub(crate) fn address(&self, chunk: u32) -> *mut u8 {
        assert!((chunk as usize) < self.next.len());
        // SAFETY: within the mapping, by the assertion.
        unsafe { self.memory.as_ptr().add(chunk as usize * CHUNK_BYTES) }
    }

    /// The bytes of chunk `chunk`, while the kernel does not change them.
    #[inline]
    pub(crate) fn bytes(&self, chunk: u32) -> &[u8] {
        // SAFETY: as below; `&self` excludes a reference that could change them.
        unsafe { std::slice::from_raw_parts(self.address(chunk), CHUNK_BYTES) }
    }

    /// Copies `length` bytes from a place of a chain, given by its first chunk, to a place of chunk
    /// `to` in another chain. Copies fewer if the chain ends or the chunk is full before.
    pub(crate) fn copy(
        &mut self,
        (from, mut at): (u32, usize),
        (to, mut to_at): (u32, usize),
        length: usize,
    ) {
        let mut left = length.min(CHUNK_BYTES.saturating_sub(to_at));
        let mut chunk = Some(from);
        while let Some(source) = chunk.filter(|&source| left > 0 && source != to) {
            if at < CHUNK_BYTES {
                let count = left.min(CHUNK_BYTES - at);
                // SAFETY: both ranges lie within their chunks, which are two.
                unsafe {
                    let (source, target) =
                        (self.address(source).add(at), self.address(to).add(to_at));
                    ptr::copy_nonoverlapping(source, target, count);
                }
                (at, to_at, left) = (at + count, to_at + count, left - count);
            }
            at = at.saturating_sub(CHUNK_BYTES);
            chunk = self.following(source);
        }
    }

    /// The bytes of chunk `chunk`, to be read and changed while the kernel does neither.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, chunk: u32) -> &mut [u8] {
        // SAFETY: `address` is the start of CHUNK_BYTES within the mapping; `&mut self` excludes
        // any other reference; system calls that fill or read chunks run only between such borrows.
        unsafe { std::slice::from_raw_parts_mut(self.address(chunk), CHUNK_BYTES) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let bytes = self.next.len() * CHUNK_BYTES;
        // SAFETY: exactly the mapping that `new` made; nobody holds pointers into it any more.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_come_back_whole_and_the_pool_is_bounded() {
        let mut pool = Pool::new(4).unwrap();
        let mut all: Vec<u32> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(all.len(), 4 + STANDING_CHUNKS);
        pool.chain(&all[..3]);
        assert_eq!(pool.following(all[0]), Some(all[1]));
        assert_eq!(pool.following(all[2]), None);
        pool.bytes_mut(all[1])[0] = 7;
        pool.release(all[0]);
        let mut again: Vec<u32> = std::iter::from_fn(|| pool.take()).collect();
        again.sort_unstable();
        all.truncate(3);
        assert_eq!(again, all);
    }
}
