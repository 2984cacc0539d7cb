package browser

import (
	"image/png"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestGoodPageIsGood(t *testing.T) {
	s := newSite(t)
	b := Start(t, s.roots, s.origin)
	for name, c := range map[string]struct {
		Options
		looks []Look
	}{
		"in all looks": {looks: Looks}, "without script": {Options{NoScript: true}, []Look{Phone}},
		"that moves": {Options{Motion: true}, []Look{DeskDark}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := b.Open(t, s.origin, c.Options)
			p.Goto("/")
			p.Audit("good", c.looks...)
		})
	}
}

func TestPicturesOfWhatIsAudited(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(PicturesVariable, folder)
	s := newSite(t)
	p := Start(t, s.roots, s.origin).Open(t, s.origin, Options{Look: PhoneDark})
	p.Goto("/")
	p.Audit("ada/good")
	file := check.Must(os.Open(filepath.Join(folder, "ada", "good 390 dark.png")))(t)
	defer file.Close()
	picture := check.Must(png.Decode(file))(t)
	if size := picture.Bounds(); size.Dx() != 390 || size.Dy() < 844 {
		t.Errorf("the picture is %v", size)
	}
	if red, _, _, _ := picture.At(0, 0).RGBA(); red > 0x4000 {
		t.Error("the picture is not dark")
	}
}

// astray are pages that do something wrong, each with what is said of it whether or not it is audited.
var astray = map[string]struct {
	page served
	said string
}{
	"console error":   {served{script: `console.error('lost', 3)`}, "console: error: lost 3"},
	"console warning": {served{script: `console.warn('odd')`}, "console: warning: odd"},
	"assertion":       {served{script: `console.assert(false, 'no')`}, "console: assert: no"},
	"exception":       {served{script: `throw new Error('broken')`}, "exception: Error: broken"},
	"rejection":       {served{script: `Promise.reject(new Error('broken'))`}, "exception: Error: broken"},
	"dialog":          {served{script: `alert('hello')`}, "dialog: alert: hello"},
	"inline script":   {served{markup: `<script>1</script>`}, "log: security error: Executing inline script"},
	"inline style":    {served{markup: `<p style="color: red">Red</p>`}, "log: security error: Applying inline style"},
	"handler":         {served{markup: `<p onclick="1">Click</p>`}, "log: security error: Executing inline event handler"},
	"foreign picture": {
		served{markup: `<img alt="" src="https://example.org/x.png">`},
		"log: security error: Loading the image",
	},
	"foreign frame": {
		served{markup: `<iframe title="x" src="https://example.org/"></iframe>`},
		"log: security error: Framing",
	},
	"foreign base": {
		served{markup: `<base href="https://example.org/">`},
		"log: security error: Setting the document's base",
	},
	"foreign form": {
		served{script: form + `f.action = 'https://example.org/'; f.submit()`},
		"log: security error: Sending form data",
	},
	"form sent on": {served{script: form + `f.action = '/away'; f.submit()`}, "log: security error: Sending form data"},
	"foreign request": {
		served{script: `fetch('https://example.org/').catch(() => {})`},
		"log: security error: Connecting to",
	},
	"markup by script": {served{script: `try { document.body.innerHTML = '' } catch {}`}, "requires 'TrustedHTML'"},
	"code by script":   {served{script: `try { eval('1') } catch {}`}, "requires 'TrustedScript'"},
	"policy of markup": {
		served{script: `try { trustedTypes.createPolicy('own', {}) } catch {}`},
		"log: security error: Creating a TrustedTypePolicy",
	},
	"missing script":     {served{markup: `<script src="/gone.js"></script>`}, "/gone.js was answered with 404"},
	"missing picture":    {served{markup: `<img alt="" src="/gone.png">`}, "/gone.png was answered with 404"},
	"failed request":     {served{script: `fetch('/broken').catch(() => {})`}, "/broken did not load: net::ERR_HTTP2"},
	"error page":         {served{status: 500}, "was answered with 500"},
	"frame of old times": {served{markup: `<iframe title="x" src="https://example.org/"></iframe>`}, "issue: QuirksModeIssue"},
}

const form = "const f = document.createElement('form'); f.method = 'post'; document.body.append(f); "

func TestFaultsAreSaid(t *testing.T) {
	s := newSite(t)
	for name, a := range astray {
		s.pages["/"+name] = a.page
	}
	s.mux.HandleFunc("/gone.js", http.NotFound)
	s.mux.HandleFunc("/gone.png", http.NotFound)
	s.mux.HandleFunc("/broken", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	s.mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://example.org/", http.StatusSeeOther)
	})
	said := watch(t, func(t testing.TB) {
		p := Start(t, s.roots, s.origin).Open(t, s.origin, Options{})
		for name, a := range astray {
			p.Goto("/" + url.PathEscape(name))
			// What a page does beside its loading, as sending a form, may go wrong later.
			check.Eventually(t, "no more is said", func() bool {
				p.report(name)
				return saidOf(t.(*watched).heard(), name, a.said)
			})
		}
	})
	for name, a := range astray {
		if !saidOf(said, name, a.said) {
			t.Errorf("%s: %q is not said of it, but %q", name, a.said, said)
		}
	}
}

// saidOf reports whether a fault of that name was said.
func saidOf(said []string, name, fault string) bool {
	return slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, name+": ") && strings.Contains(s, fault) })
}

func TestFaultsAreSaidInTheEnd(t *testing.T) {
	s := newSite(t)
	s.pages["/"] = served{script: `console.error('lost')`}
	said := watch(t, func(t testing.TB) { Start(t, s.roots, s.origin).Open(t, s.origin, Options{}).Goto("/") })
	if want := []string{"the end: /: console: error: lost"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

func TestCrashIsAFault(t *testing.T) {
	s := newSite(t)
	p := Start(t, s.roots, s.origin).Open(t, s.origin, Options{})
	p.Goto("/")
	go func() { _, _ = try(p, page.Crash, cdp.Empty{}) }() // It has no answer.
	check.Eventually(t, "no fault is said", func() bool { return slices.Equal(p.takeFaults(), []string{"/: the page crashed"}) })
}

// bad are pages that show something wrong, each with all that is said of it.
var bad = map[string]struct {
	page served
	look Look
	said string
}{
	"wide":            {served{markup: `<p class="wide">Wide</p>`}, Desk, "wide in a window of 1440, by <p.wide>"},
	"wide on a phone": {served{markup: `<p class="wide">Wide</p>`}, Phone, "wide in a window of 390, by <p.wide>"},
	"shortened": {
		served{markup: `<p class="narrow">Far too long for the room</p>`},
		Desk, `the text of <p.narrow> "Far too long for the room" is cut off`,
	},
	"lowered":  {served{markup: `<div class="low"><p>Line</p></div>`}, Desk, `the text of <p> "Line" is cut off`},
	"clamped":  {served{markup: `<p class="clamped">One line, and another that nobody sees</p>`}, Desk, `is cut off`},
	"motion":   {served{markup: `<p class="moves">Hop</p>`}, Desk, `<p.moves> "Hop" moves, by in`},
	"contrast": {served{markup: `<p class="pale">Pale</p>`}, Desk, "color-contrast: .pale"},
	"no name":  {served{markup: `<button type="button"></button>`}, Desk, "button-name: button"},
	"no label": {served{markup: `<input autocomplete="off">`}, Desk, "label: "},
	"small target": {
		served{markup: `<p><button class="tiny" type="button">a</button><button class="tiny" type="button">b</button></p>`},
		Desk, "target-size",
	},
	"no outline": {
		served{markup: `<a class="bare" href="/">Bare</a>`},
		Desk, `<a.bare> "Bare" does not show that the keyboard is there`,
	},
	"faint outline": {
		served{markup: `<a class="faint" href="/">Faint</a>`},
		Desk, `the outline of <a.faint> "Faint" can hardly be told`,
	},
	"covered": {served{markup: `<div class="over">Over</div>`}, Desk, "has the keyboard, and lies under"},
	"out of reach": {
		served{script: `addEventListener('keydown', e => { if (e.key === 'Tab') e.preventDefault() })`},
		Desk, "the keyboard does not reach",
	},
	"beyond the picture": {
		served{markup: `<svg width="90" height="20" role="img" aria-label="x"><text x="60" y="15">Outside</text></svg>`},
		Desk, `<text> "Outside" is cut off`,
	},
	"heavy": {served{markup: "<!--" + strings.Repeat("x", maxSize) + "-->"}, Desk, "bytes, and may have 102400"},
}

func TestAuditFinds(t *testing.T) {
	s := newSite(t)
	for name, b := range bad {
		s.pages["/"+name] = b.page
	}
	said := watch(t, func(t testing.TB) {
		p := Start(t, s.roots, s.origin).Open(t, s.origin, Options{})
		for name, b := range bad {
			p.Goto("/" + url.PathEscape(name))
			p.Audit(name, b.look)
		}
	})
	for name, b := range bad {
		if !slices.ContainsFunc(said, func(finding string) bool {
			return strings.HasPrefix(finding, name) && strings.Contains(finding, b.said)
		}) {
			t.Errorf("%s: %q is not said of it", name, b.said)
		}
	}
	for _, finding := range said {
		if !slices.ContainsFunc(slices.Sorted(maps.Keys(bad)), func(name string) bool {
			return strings.HasPrefix(finding, name) && strings.Contains(finding, bad[name].said)
		}) {
			t.Errorf("%q is said besides", finding)
		}
	}
}
