// Paper is white: a dark page is printed in the colours of the light one.

/** `repaint` draws again what style sheets do not reach. */
export function printed(repaint: () => void): void {
    const { dataset } = document.documentElement;
    let theme: string | undefined;
    window.addEventListener("beforeprint", () => {
        theme = dataset.theme;
        dataset.theme = "light";
        repaint();
    });
    window.addEventListener("afterprint", () => {
        if (theme === undefined) delete dataset.theme;
        else dataset.theme = theme;
        repaint();
    });
}
