//! Rust's needs of the kernel: memory, and an end when all is lost.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::fmt::Write;
use core::panic::PanicInfo;

use simnel_core::netlink::Text;

extern "C" {
    fn simnel_host_alloc(size: usize, align: usize) -> *mut c_void;
    fn simnel_host_free(memory: *mut c_void);
    fn simnel_host_panic(text: *const u8, length: usize) -> !;
}

/// `kvmalloc` and `kvfree`.
struct Kernel;

#[global_allocator]
static KERNEL: Kernel = Kernel;

// SAFETY: C's functions give memory of the size and alignment asked for, or null; it stays until
// it is freed.
unsafe impl GlobalAlloc for Kernel {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and alignment may be asked for.
        unsafe { simnel_host_alloc(layout.size(), layout.align()).cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: it came from `alloc`.
        unsafe { simnel_host_free(memory.cast()) }
    }
}

/// The end of the calling process, which holds RTNL while it reads or changes settings: nobody can
/// change the network afterwards. So memory that settings cannot do without is waited for
/// (`WAITED` in kernel/host.c). Nothing that a packet can reach panics.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let mut text = Text::<200>::default();
    let _ = write!(text, "{info}");
    let text = text.as_str();
    // SAFETY: the text is readable.
    unsafe { simnel_host_panic(text.as_ptr(), text.len()) }
}
