package browser

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/pgherd/pgherd/acceptance/check"
)

// Look is how a person looks at a page.
type Look struct {
	Width int
	Dark  bool
}

// The looks that a page has to be good for: on a phone and on a desk, light and dark.
var (
	Phone     = Look{Width: 390}
	PhoneDark = Look{Width: 390, Dark: true}
	Desk      = Look{Width: 1440}
	DeskDark  = Look{Width: 1440, Dark: true}

	Looks = []Look{Desk, DeskDark, Phone, PhoneDark}
)

// String tells a look by what a file can be called.
func (l Look) String() string {
	if l.Dark {
		return strconv.Itoa(l.Width) + " dark"
	}
	return strconv.Itoa(l.Width) + " light"
}

// Options say what a person's browser is like.
type Options struct {
	Look     Look // Desk, if not said
	NoScript bool
	// Motion is for a person who did not ask for less of it.
	Motion bool
}

// Page is a tab of a browser. Whoever reads it has waited until it is at rest: until nothing loads, besides streams.
//
// What a method finds wrong ends the test; what a page does wrong is said by the next Audit, or at the end.
type Page struct {
	*tab
	t     testing.TB
	scope string // a selector, or ""
}

// tab is what the views of one page share.
type tab struct {
	*record
	b      *Browser
	ctx    context.Context
	origin string
	Options
	patience time.Duration
}

// patience is far above what a page takes to come to rest, or to show what it is to show.
const patience = 20 * time.Second

// Open opens a page for a person of their own: with no cookies, and nothing kept. It is closed when the test is over.
func (b *Browser) Open(t testing.TB, origin string, o Options) *Page {
	t.Helper()
	return b.open(t, origin, o, chromedp.WithNewBrowserContext())
}

// Tab opens another page for the same person.
func (p *Page) Tab() *Page {
	p.t.Helper()
	return p.b.open(p.t, p.origin, p.Options, chromedp.WithExistingBrowserContext(chromedp.FromContext(p.ctx).BrowserContextID))
}

func (b *Browser) open(t testing.TB, origin string, o Options, person chromedp.ContextOption) *Page {
	t.Helper()
	if o.Look.Width == 0 {
		o.Look.Width = Desk.Width
	}
	p := &Page{t: t, tab: &tab{record: newRecord(), b: b, origin: strings.TrimSuffix(origin, "/"), Options: o, patience: patience}}
	ctx, closePage := chromedp.NewContext(b.ctx, person, chromedp.WithListener(p.note))
	p.ctx = ctx
	t.Cleanup(func() {
		p.report("the end")
		closePage()
	})
	check.NoError(t, chromedp.Do(ctx), "open a page")
	p.of(p.mainFrame(), func() {
		_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) // It may be gone.
	})
	call(p, audits.Enable, cdp.Empty{})
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.runScripts(!o.NoScript)
	_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
		DownloadPath: b.home, EventsEnabled: new(true),
	})
	check.NoError(t, err, "take downloads")
	p.Set(o.Look)
	return p
}

// mainFrame is the page's own, as opposed to those within it.
func (p *Page) mainFrame() string { return string(chromedp.FromContext(p.ctx).Target.TargetID) }

func (p *Page) runScripts(run bool) {
	p.t.Helper()
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !run})
}

// do runs an action of chromedp, which must not fail.
func (p *Page) do(what string, action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, action); err != nil {
		p.fail("%s: %v", what, err)
	}
}

// until waits for something; what says what did not come.
func (p *Page) until(what func() string, holds func() bool) {
	p.t.Helper()
	for began := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > p.patience {
			p.fail("%s", what())
		}
	}
}

// fail ends the test, with what the page did wrong before: that may be why.
func (p *Page) fail(format string, args ...any) {
	p.t.Helper()
	p.report("before")
	p.t.Fatalf(p.Path()+": "+format, args...)
}

// Goto opens a path of the origin, or another address.
func (p *Page) Goto(path string) {
	p.t.Helper()
	address := path
	if strings.HasPrefix(path, "/") {
		address = p.origin + path
	}
	p.acts()
	got := call(p, page.Navigate, page.NavigateParams{URL: address})
	if got.ErrorText != "" {
		p.fail("go to %s: %s", address, got.ErrorText)
	}
	p.rest()
}

// Back goes back to the page before.
func (p *Page) Back() {
	p.t.Helper()
	p.acts()
	p.do("go back", chromedp.NavigateBack())
	p.rest()
}

// rest waits until nothing loads.
func (p *Page) rest() {
	p.t.Helper()
	p.until(p.restless, p.rests)
}

// Expect announces one load that the server answers with a status of 400 or more, or not at all: status 0. It is a fault if it
// does not come before the next Audit. The path may have a query; where it has none, any will do.
func (p *Page) Expect(status int, path string) { p.announce(status, path) }

// Path is where the page is, below its origin.
func (p *Page) Path() string {
	at := p.address()
	if u, err := url.Parse(at); err == nil && u.Scheme+"://"+u.Host == p.origin {
		return strings.TrimPrefix(at, p.origin)
	}
	return at
}

// Status is what the server answered to the document.
func (p *Page) Status() int {
	p.t.Helper()
	p.rest()
	return p.answered()
}

// Set changes how the person looks at the page.
func (p *Page) Set(look Look) {
	p.t.Helper()
	p.Look = look
	phone := look.Width < 600
	height := int64(900)
	if phone {
		height = 844
	}
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(look.Width), Height: height, DeviceScaleFactor: 1, Mobile: phone,
	})
	scheme, motion := "light", "reduce"
	if look.Dark {
		scheme = "dark"
	}
	if p.Motion {
		motion = "no-preference"
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
	}})
}
