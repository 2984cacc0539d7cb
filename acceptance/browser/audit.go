package browser

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// maxSize is what a page may weigh: the document, its styles and its scripts, before they are compressed.
const maxSize = 100 << 10

// PicturesVariable names the folder for the pictures of what was audited.
const PicturesVariable = "PGHERD_SCREENSHOTS"

// tags name the rules of axe-core that hold: WCAG 2.2 AA, and what its makers advise besides.
const tags = `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]`

var axe = sync.OnceValues(func() (string, error) {
	folder, err := toolchain.Folder(toolchain.Axe)
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(folder, "axe.min.js"))
	return string(source), err
})

// Audit fails the test where the page is not what every page has to be. It says each thing that went wrong on the page since the
// last Audit, and whether the page is too large. Then it looks at the page in each of the looks, or as it is:
//
//   - nothing makes it wider than the window, and no text is cut off;
//   - nothing moves for a person who asked for less motion;
//   - axe-core finds nothing;
//   - the Tab key comes to everything that can be used, each shows clearly that it is there, and nothing lies over it.
//
// The name is for whoever reads the findings, and for the pictures.
func (p *Page) Audit(name string, looks ...Look) {
	p.t.Helper()
	p.rest()
	p.report(name)
	raw, sent := p.size()
	p.t.Logf("%s: %d bytes, sent as %d", name, raw, sent)
	if raw > maxSize {
		p.t.Errorf("%s: the page has %d bytes, and may have %d", name, raw, maxSize)
	}
	if p.NoScript { // Those of the page have had their time: they are not run any more.
		p.runScripts(true)
		defer p.runScripts(false)
	}
	was := p.Look
	if len(looks) == 0 {
		looks = []Look{was}
	}
	for _, look := range looks {
		p.Set(look)
		p.auditLook(name + " " + look.String())
	}
	p.Set(was)
	p.report(name)
}

// report says what went wrong since it was last asked.
func (p *Page) report(name string) {
	p.t.Helper()
	for _, fault := range p.takeFaults() {
		p.t.Errorf("%s: %s", name, fault)
	}
}

func (p *Page) auditLook(name string) {
	p.t.Helper()
	p.do("point at nothing", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 0, 0))
	p.rest()
	p.picture(name)
	var found, axed []string
	p.asked("pgherd.audit.look("+strconv.Itoa(p.Look.Width)+")", &found)
	var loaded bool
	p.asked("'axe' in globalThis", &loaded)
	if !loaded {
		source := check.Must(axe())(p.t)
		p.asked(source+"\n;true", &loaded)
	}
	p.asked("pgherd.audit.axed("+tags+")", &axed)
	for _, finding := range append(append(found, axed...), p.tabs()...) {
		p.t.Errorf("%s: %s", name, finding)
	}
}

// tabs goes through the page by the Tab key.
func (p *Page) tabs() (found []string) {
	p.t.Helper()
	var stops int
	p.asked("pgherd.audit.stops()", &stops)
	for range 5*stops + 10 { // A date is several stops, and what can be scrolled is one, too.
		var stop struct {
			Over  bool
			Wrong []string
		}
		p.do("press Tab", chromedp.KeyEvent("\t"))
		p.asked("pgherd.audit.stop()", &stop)
		if stop.Over {
			break
		}
		found = append(found, stop.Wrong...)
	}
	var missed []string
	p.asked("pgherd.audit.missed()", &missed)
	return append(found, missed...)
}

// picture keeps what can be seen, where pictures are wanted.
func (p *Page) picture(name string) {
	p.t.Helper()
	folder := os.Getenv(PicturesVariable)
	if folder == "" {
		return
	}
	file := filepath.Join(folder, filepath.FromSlash(name)+".png")
	check.NoError(p.t, os.MkdirAll(filepath.Dir(file), 0o755))
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	shot := check.Must(chromedp.Run(ctx, chromedp.FullScreenshot(100)))(p.t)
	check.NoError(p.t, os.WriteFile(file, shot, 0o644))
}
