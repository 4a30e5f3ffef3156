//! SVG to PNG, with the system's fonts. Where there are none, drawings come without letters.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{fontdb::Database, Options, Tree};

/// Dots for each unit of the drawing: sharp in print and on dense screens.
const SCALE: f32 = 2.0;

/// The fonts, read once.
pub struct Fonts(Arc<Database>);

impl Fonts {
    /// Those of the system.
    pub fn new() -> Fonts {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        // Whatever there is stands in for the generic family.
        let any = fonts.faces().next().and_then(|face| face.families.first().cloned());
        if let Some((name, _)) = any {
            fonts.set_sans_serif_family(name);
        }
        Fonts(Arc::new(fonts))
    }

    /// The drawing as a PNG file; the error says what is wrong with the drawing.
    pub fn render(&self, svg: &str) -> Result<Vec<u8>, String> {
        let options = Options { fontdb: Arc::clone(&self.0), ..Options::default() };
        let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
        let size = tree.size();
        let (width, height) = ((size.width() * SCALE) as u32, (size.height() * SCALE) as u32);
        let mut pixels = Pixmap::new(width, height).ok_or("a drawing without size")?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_becomes_pixels_of_twice_its_size() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"5\" \
                   viewBox=\"0 0 10 5\"><rect width=\"10\" height=\"5\" fill=\"#f00\"/></svg>";
        let png = Fonts::new().render(svg).expect("a drawing");
        let pixels = Pixmap::decode_png(&png).expect("a PNG file");
        assert_eq!((pixels.width(), pixels.height()), (20, 10));
        assert_eq!(pixels.pixel(3, 3).map(|pixel| (pixel.red(), pixel.blue())), Some((255, 0)));
        assert!(Fonts::new().render("no drawing").is_err());
    }
}
