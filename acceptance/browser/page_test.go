package browser

import (
	"strings"
	"testing"
	"time"
)

func TestPersonUsesAPage(t *testing.T) {
	s := newSite(t)
	s.pages["/live"] = served{markup: `<p id="live"></p>`}
	s.pages["/gone"] = served{status: 404}
	b := Start(t, s.roots, s.origin)
	for name, o := range map[string]Options{"": {}, "without script": {NoScript: true}, "on a phone": {Look: PhoneDark}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := b.Open(t, s.origin, o)
			p.Goto("/")
			p.Fill("Name", "ord")
			p.Fill("Name", "orders")
			p.Fill("From", "2026-11-27")
			p.Choose("Plan", "Pro")
			p.In("form").Click("I am sure")
			p.Press("Shift+Tab", "ArrowDown")
			for label, want := range map[string]string{
				"Name": "orders", "From": "2026-11-27", "Plan": "Pro", "I am sure": "on", "Test": "on", "Production": "",
			} {
				if got := p.Value(label); got != want {
					t.Errorf("%s holds %q, want %q", label, got, want)
				}
			}
			p.Click("Save")
			p.Sees("orders Pro 2026-11-27 bon")
			if !strings.HasPrefix(p.Path(), "/answered?") || p.Status() != 200 {
				t.Errorf("at %s with %d", p.Path(), p.Status())
			}
			p.Back()
			p.Lacks("orders Pro")
			p.Press("Tab")
			if got := p.Focused(); got != "Skip to content" {
				t.Errorf("the keyboard is at %q", got)
			}
			p.Click("More")
			p.Click("Read on")
			p.Expect(404, "/gone")
			p.Goto("/gone")
			if p.Path() != "/gone" || p.Status() != 404 {
				t.Errorf("at %s with %d", p.Path(), p.Status())
			}
			if name, content := p.Download("Download"); name != "usage.csv" || string(content) != "day,bytes\n" {
				t.Errorf("got %s: %q", name, content)
			}
			if p.Offers("Delete everything") || !p.Offers("Save") {
				t.Error("offers what it does not, or does not what it does")
			}
		})
	}
	t.Run("live", func(t *testing.T) {
		p := b.Open(t, s.origin, Options{})
		p.Goto("/live")
		p.Sees("40 percent")
		p.Tab().Goto("/live")
	})
}

// TestWhoeverWritesAWalkIsTold holds what a walk that goes wrong says: that is how it is put right.
func TestWhoeverWritesAWalkIsTold(t *testing.T) {
	s := newSite(t)
	s.pages["/"] = served{markup: `<button type="button">Save</button> <input aria-label="Key" readonly> <p class="over">Over</p>`}
	p := Start(t, s.roots, s.origin).Open(t, s.origin, Options{})
	for _, c := range []struct {
		does func(p *Page)
		said string
	}{
		{func(p *Page) { p.Click("Sve") }, `0 things are called "Sve", of: ["checkbox I am sure"`},
		{func(p *Page) { p.Click("Save") }, `2 things are called "Save"`},
		{func(p *Page) { p.Click("Delete") }, `is disabled`},
		{func(p *Page) { p.Click("Databases") }, `<a> "Databases" lies under <p.over> "Over"`},
		{func(p *Page) { p.Click("#gone") }, `nothing matches #gone`},
		{func(p *Page) { p.In("#gone").Click("Save") }, `nothing matches #gone`},
		{func(p *Page) { p.Fill("Key", "x") }, `is only to be read`},
		{func(p *Page) { p.Fill("From", "soon") }, `does not take soon`},
		{func(p *Page) { p.Choose("Plan", "Gold") }, `of Free, Pro none is Gold`},
		{func(p *Page) { p.Sees("Gold") }, `"Gold" is not to be read; what is: Skip to content`},
		{func(p *Page) { p.Lacks("More") }, `"More" is to be read`},
		{func(p *Page) { p.Press("Entr") }, `no key is called "Entr"`},
		{func(p *Page) { p.Expect(404, "/gone") }, "/gone was to be answered with 404, and was not"},
		{func(p *Page) { p.Goto("https://localhost:1/") }, "go to https://localhost:1/: net::ERR_UNSAFE_PORT"},
	} {
		p.patience = patience
		p.Goto("/")
		p.patience = 100 * time.Millisecond
		said := watch(t, func(t testing.TB) {
			told := &Page{tab: p.tab, t: t}
			c.does(told)
			told.report("then")
		})
		if !strings.Contains(strings.Join(said, "\n"), c.said) {
			t.Errorf("%q is not said, but %q", c.said, said)
		}
	}
}

func TestPasskey(t *testing.T) {
	s := newSite(t)
	s.keys(t)
	s.pages["/"] = served{
		markup: `<button type="button" id="register">Register</button> <button type="button" id="enter">Log in</button>`,
	}
	p := Start(t, s.roots, s.origin).Open(t, s.origin, Options{})
	device := p.Passkeys()
	p.Goto("/")
	p.Click("Register")
	p.Sees("registered")
	if device.Count() != 1 {
		t.Errorf("the device keeps %d passkeys", device.Count())
	}
	p.Click("Log in")
	p.Sees("logged in")
	device.Verify(false)
	p.Click("Log in")
	p.Sees("refused: NotAllowedError")
	device.Lose()
	p.Click("Log in")
	p.Sees("refused: NotAllowedError")
}
