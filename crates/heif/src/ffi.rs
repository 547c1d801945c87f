//! The C interface of libheif. The only module with `unsafe`.
//!
//! What makes it sound:
//! - The types below are those of the library's header `heif.h`, which keeps them the same throughout version 1;
//!   [`load`] refuses libraries that lack one of the functions.
//! - [`Context`], [`Handle`] and [`Decoded`] own their pointers from creation to release; a context borrows the
//!   bytes that it reads from and outlives its handles.
//! - Rows of a decoded picture are read within the width, height and stride that the library states for it.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;

use crate::Picture;

const HEVC: c_int = 1;
const COLORSPACE_RGB: c_int = 1;
const CHROMA_INTERLEAVED_RGB: c_int = 10;
const CHANNEL_INTERLEAVED: c_int = 10;

type Pointer = *mut c_void;

/// `struct heif_error`: 0 as code is success; the message is static or lives as long as the context.
#[repr(C)]
#[derive(Clone, Copy)]
struct Status {
    code: c_int,
    subcode: c_int,
    message: *const c_char,
}

macro_rules! functions {
    ($($name:ident = $symbol:literal : fn($($arg:ty),*) $(-> $ret:ty)?;)+) => {
        #[derive(Debug)]
        pub(crate) struct Functions { $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)+ }

        impl Functions {
            /// # Safety
            /// The symbols of `library` must have the types of `heif.h`.
            unsafe fn find(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: the caller vouches for the types.
                unsafe { Ok(Self { $($name: *library.get($symbol)?,)+ }) }
            }
        }
    };
}

functions! {
    get_version = b"heif_get_version": fn() -> *const c_char;
    init = b"heif_init": fn(Pointer) -> Status;
    have_decoder = b"heif_have_decoder_for_format": fn(c_int) -> c_int;
    context_alloc = b"heif_context_alloc": fn() -> Pointer;
    context_free = b"heif_context_free": fn(Pointer);
    context_read = b"heif_context_read_from_memory_without_copy": fn(Pointer, *const c_void, usize, *const c_void)
        -> Status;
    count = b"heif_context_get_number_of_top_level_images": fn(Pointer) -> c_int;
    list = b"heif_context_get_list_of_top_level_image_IDs": fn(Pointer, *mut u32, c_int) -> c_int;
    handle = b"heif_context_get_image_handle": fn(Pointer, u32, *mut Pointer) -> Status;
    handle_release = b"heif_image_handle_release": fn(Pointer);
    handle_width = b"heif_image_handle_get_width": fn(Pointer) -> c_int;
    handle_height = b"heif_image_handle_get_height": fn(Pointer) -> c_int;
    decode = b"heif_decode_image": fn(Pointer, *mut Pointer, c_int, c_int, *const c_void) -> Status;
    image_release = b"heif_image_release": fn(Pointer);
    image_width = b"heif_image_get_width": fn(Pointer, c_int) -> c_int;
    image_height = b"heif_image_get_height": fn(Pointer, c_int) -> c_int;
    image_plane = b"heif_image_get_plane_readonly": fn(Pointer, c_int, *mut c_int) -> *const u8;
}

/// Loads the library and sets it up, its decoders included.
pub(crate) fn load(path: &Path) -> Result<(Functions, libloading::Library), String> {
    // SAFETY: the library's constructors have no preconditions.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| error.to_string())?;
    // SAFETY: types as in `heif.h` of version 1.
    let functions = unsafe { Functions::find(&library) }.map_err(|error| error.to_string())?;
    // SAFETY: without parameters it sets up what is usual. It is not undone: the library stays for good.
    checked(unsafe { (functions.init)(std::ptr::null_mut()) })?;
    Ok((functions, library))
}

fn checked(status: Status) -> Result<(), String> {
    if status.code == 0 {
        return Ok(());
    }
    if status.message.is_null() {
        return Err(format!("error {}.{}", status.code, status.subcode));
    }
    // SAFETY: a string that ends with a zero byte and lives at least as long as the context, which the caller holds.
    let message = unsafe { CStr::from_ptr(status.message) };
    Err(message.to_string_lossy().into_owned())
}

impl Functions {
    pub(crate) fn version(&self) -> String {
        // SAFETY: returns a static string.
        let version = unsafe { CStr::from_ptr((self.get_version)()) };
        version.to_string_lossy().into_owned()
    }

    pub(crate) fn has_decoder(&self) -> bool {
        // SAFETY: the library has been set up.
        unsafe { (self.have_decoder)(HEVC) != 0 }
    }

    /// Reads the structure of a file.
    pub(crate) fn open<'a>(&'a self, bytes: &'a [u8]) -> Result<Context<'a>, String> {
        // SAFETY: no preconditions.
        let pointer = unsafe { (self.context_alloc)() };
        if pointer.is_null() {
            return Err("no memory for its structure".into());
        }
        let context = Context {
            pointer,
            functions: self,
            bytes: PhantomData,
        };
        // SAFETY: the bytes outlive the context by its lifetime.
        let status = unsafe { (self.context_read)(pointer, bytes.as_ptr().cast(), bytes.len(), std::ptr::null()) };
        checked(status)?;
        Ok(context)
    }
}

/// An open file.
pub(crate) struct Context<'a> {
    pointer: Pointer,
    functions: &'a Functions,
    bytes: PhantomData<&'a [u8]>,
}

impl Context<'_> {
    /// The ids of the pictures, at most `most` of them.
    pub(crate) fn pictures(&self, most: usize) -> Result<Vec<u32>, String> {
        // SAFETY: a live context.
        let count = unsafe { (self.functions.count)(self.pointer) };
        let count = usize::try_from(count).unwrap_or(0).min(most);
        let room = c_int::try_from(count).map_err(|_| "it has too many pictures")?;
        let mut ids = vec![0; count];
        // SAFETY: a live context, and room for as many ids as asked for.
        let written = unsafe { (self.functions.list)(self.pointer, ids.as_mut_ptr(), room) };
        ids.truncate(usize::try_from(written).unwrap_or(0));
        if ids.is_empty() {
            return Err("it holds no picture".into());
        }
        Ok(ids)
    }

    fn handle(&self, id: u32) -> Result<Handle<'_>, String> {
        let mut pointer = std::ptr::null_mut();
        // SAFETY: a live context, and a pointer to a live variable.
        checked(unsafe { (self.functions.handle)(self.pointer, id, &mut pointer) })?;
        Ok(Handle {
            pointer,
            functions: self.functions,
        })
    }

    /// Width and height of a picture as displayed.
    pub(crate) fn size(&self, id: u32) -> Result<(u32, u32), String> {
        let handle = self.handle(id)?;
        // SAFETY: a live handle.
        let (width, height) = unsafe {
            (
                (self.functions.handle_width)(handle.pointer),
                (self.functions.handle_height)(handle.pointer),
            )
        };
        positive(width, height)
    }

    /// The pixels of a picture.
    pub(crate) fn decode(&self, id: u32) -> Result<Picture, String> {
        let handle = self.handle(id)?;
        let mut pointer = std::ptr::null_mut();
        // SAFETY: a live handle, and a pointer to a live variable; without options the usual ones hold.
        let status = unsafe {
            (self.functions.decode)(
                handle.pointer,
                &mut pointer,
                COLORSPACE_RGB,
                CHROMA_INTERLEAVED_RGB,
                std::ptr::null(),
            )
        };
        checked(status)?;
        let decoded = Decoded {
            pointer,
            functions: self.functions,
        };
        decoded.picture()
    }
}

fn positive(width: c_int, height: c_int) -> Result<(u32, u32), String> {
    match (u32::try_from(width), u32::try_from(height)) {
        (Ok(width), Ok(height)) if width > 0 && height > 0 => Ok((width, height)),
        _ => Err("it has no pixels".into()),
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: freed once; handles borrow the context, so none is left.
        unsafe { (self.functions.context_free)(self.pointer) };
    }
}

/// A picture of a file.
struct Handle<'c> {
    pointer: Pointer,
    functions: &'c Functions,
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: released once.
        unsafe { (self.functions.handle_release)(self.pointer) };
    }
}

/// A decoded picture.
struct Decoded<'c> {
    pointer: Pointer,
    functions: &'c Functions,
}

impl Decoded<'_> {
    fn picture(&self) -> Result<Picture, String> {
        let mut stride = 0;
        // SAFETY: a live image, and a pointer to a live variable.
        let (width, height, plane) = unsafe {
            (
                (self.functions.image_width)(self.pointer, CHANNEL_INTERLEAVED),
                (self.functions.image_height)(self.pointer, CHANNEL_INTERLEAVED),
                (self.functions.image_plane)(self.pointer, CHANNEL_INTERLEAVED, &mut stride),
            )
        };
        let (width, height) = positive(width, height)?;
        let row = width as usize * 3;
        let stride = usize::try_from(stride).unwrap_or(0);
        if plane.is_null() || stride < row {
            return Err("its pixels make no sense".into());
        }
        let mut rgb = Vec::with_capacity(row * height as usize);
        for y in 0..height as usize {
            // SAFETY: the plane has `height` rows, `stride` bytes apart, of three bytes for each pixel.
            rgb.extend_from_slice(unsafe { std::slice::from_raw_parts(plane.add(y * stride), row) });
        }
        Ok(Picture { width, height, rgb })
    }
}

impl Drop for Decoded<'_> {
    fn drop(&mut self) {
        // SAFETY: released once.
        unsafe { (self.functions.image_release)(self.pointer) };
    }
}
