package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// What a person can click, and what they can fill in, by the roles that Chromium gives them.
var (
	ticked  = []string{"checkbox", "radio", "switch"}
	buttons = append(ticked[:3:3], "button", "link", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option",
		"DisclosureTriangle", "DisclosureTriangleGrouped")
	fields = []string{"textbox", "searchbox", "spinbutton", "combobox", "listbox", "Date", "DateTime", "InputTime", "slider"}
)

// In is the same page, of which only a part is looked at: what matches the selector first.
func (p *Page) In(selector string) *Page { return &Page{tab: p.tab, t: p.t, scope: selector} }

// Click clicks in the middle of what has this name for a person who does not see the page: a link, a button, a field to tick. It
// waits until there is one that can be clicked. A text that starts with "#", "." or "[" is a selector.
func (p *Page) Click(what string) {
	p.t.Helper()
	var at struct {
		X, Y  float64
		Wrong string
	}
	p.with(what, buttons, "pgherd.aim(this)", &at, &at.Wrong)
	p.acts()
	p.do("click "+what, chromedp.MouseClickXY(at.X, at.Y))
	p.rest()
}

// Fill puts a text into the field with this label, in the place of what it holds.
func (p *Page) Fill(label, text string) {
	p.t.Helper()
	var field struct {
		Typed bool // The text is to be typed, as is possible where any key can be.
		Wrong string
	}
	p.with(label, fields, "pgherd.fill(this, "+quoted(text)+")", &field, &field.Wrong)
	if field.Typed {
		call(p, input.InsertText, input.InsertTextParams{Text: text})
	}
	p.rest()
}

// Choose chooses the option with this text in the field with this label.
func (p *Page) Choose(label, option string) {
	p.t.Helper()
	var field struct{ Wrong string }
	p.with(label, fields, "pgherd.choose(this, "+quoted(option)+")", &field, &field.Wrong)
	p.rest()
}

// Value is what the field with this label holds; "on" and "" of one to tick.
func (p *Page) Value(label string) string {
	p.t.Helper()
	var field struct{ Value, Wrong string }
	p.with(label, slices.Concat(fields, ticked), "pgherd.value(this)", &field, &field.Wrong)
	return field.Value
}

// with waits until the one thing of some roles that has a name answers, and has nothing wrong.
func (p *Page) with(what string, roles []string, expression string, answer any, wrong *string) {
	p.t.Helper()
	p.until(func() string { return *wrong }, func() bool {
		p.rest()
		node, missing := p.find(what, roles)
		if *wrong = missing; missing != "" {
			return false
		}
		p.acts()
		if err := p.on(node, expression, answer); err != nil {
			*wrong = err.Error()
		}
		return *wrong == ""
	})
}

// Press presses keys, each by its name ("Enter", "ArrowDown", "a"), with those that are held before it ("Shift+Tab").
func (p *Page) Press(keys ...string) {
	p.t.Helper()
	held := map[string]kb.Modifier{"Shift": kb.ModifierShift, "Control": kb.ModifierCtrl, "Alt": kb.ModifierAlt}
	p.rest()
	for _, key := range keys {
		var modifiers []kb.Modifier
		for before, after, found := strings.Cut(key, "+"); found && held[before] != 0; before, after, found = strings.Cut(key, "+") {
			modifiers, key = append(modifiers, held[before]), after
		}
		p.acts()
		p.do("press "+key, chromedp.KeyEvent(p.key(key), chromedp.KeyModifiers(modifiers...)))
		p.rest()
	}
}

func (p *Page) key(name string) string {
	p.t.Helper()
	if utf8.RuneCountInString(name) == 1 {
		return name
	}
	var runes []rune
	for r, k := range kb.Keys {
		if k.Key == name {
			runes = append(runes, r)
		}
	}
	if len(runes) == 0 {
		p.fail("no key is called %q", name)
	}
	return string(slices.Min(runes))
}

// Focused is the name of what the keyboard is at.
func (p *Page) Focused() string {
	p.t.Helper()
	p.rest()
	focused, err := p.object("document.activeElement")
	if err != nil {
		p.fail("%v", err)
	}
	for _, n := range call(p, accessibility.GetPartialAXTree, accessibility.GetPartialAXTreeParams{
		ObjectID: focused, FetchRelatives: new(false),
	}).Nodes {
		return text(n.Name)
	}
	return ""
}

// Text is what can be read on the page.
func (p *Page) Text() (read string) {
	p.t.Helper()
	p.asked("pgherd.scope("+quoted(p.scope)+")?.innerText ?? ''", &read)
	return read
}

// Sees waits until the texts can be read on the page.
func (p *Page) Sees(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		var read string
		p.until(func() string { return fmt.Sprintf("%q is not to be read; what is: %s", text, read) }, func() bool {
			read = p.Text()
			return strings.Contains(read, text)
		})
	}
}

// Lacks waits until none of the texts can be read on the page.
func (p *Page) Lacks(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.until(
			func() string { return fmt.Sprintf("%q is to be read", text) },
			func() bool { return !strings.Contains(p.Text(), text) })
	}
}

// Offers reports whether there is something to click or to fill in with this name.
func (p *Page) Offers(what string) bool {
	p.t.Helper()
	p.rest()
	_, wrong := p.find(what, slices.Concat(buttons, fields))
	return wrong == ""
}

// Download clicks what gives a file, and returns the file when it is there.
func (p *Page) Download(what string) (name string, content []byte) {
	p.t.Helper()
	p.Click(what)
	var file string
	p.until(func() string { return "no file came of " + what }, func() bool {
		file, name = p.b.takeDownload(p.mainFrame())
		return file != ""
	})
	content, err := os.ReadFile(file)
	if err != nil {
		p.fail("%v", err)
	}
	_ = os.Remove(file)
	return name, content
}

// find looks for the one thing of some roles that has a name, and says what is wrong if there is not just one.
func (p *Page) find(what string, roles []string) (node cdp.BackendNodeID, wrong string) {
	root, err := p.object("pgherd.scope(" + quoted(p.scope) + ")")
	if err != nil || root == "" {
		return 0, fmt.Sprintf("nothing matches %s (%v)", p.scope, err)
	}
	if strings.ContainsAny(what[:1], "#.[") {
		return p.selected(what)
	}
	named, err := try(p, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: root, AccessibleName: what})
	if err != nil {
		return 0, err.Error()
	}
	var found []cdp.BackendNodeID
	for _, n := range named.Nodes {
		if !n.Ignored && slices.Contains(roles, text(n.Role)) {
			found = append(found, n.BackendDOMNodeID)
		}
	}
	if len(found) == 1 {
		return found[0], ""
	}
	return 0, fmt.Sprintf("%d things are called %q, of: %q", len(found), what, p.names(root, roles))
}

// selected is the first element that a selector matches.
func (p *Page) selected(selector string) (node cdp.BackendNodeID, wrong string) {
	object, err := p.object("pgherd.scope(" + quoted(p.scope) + ").querySelector(" + quoted(selector) + ")")
	if err != nil || object == "" {
		return 0, fmt.Sprintf("nothing matches %s (%v)", selector, err)
	}
	described, err := try(p, dom.DescribeNode, dom.DescribeNodeParams{ObjectID: object})
	if err != nil {
		return 0, err.Error()
	}
	return described.Node.BackendNodeID, ""
}

// names lists what there is of some roles, for whoever reads why one was not found.
func (p *Page) names(root runtime.RemoteObjectID, roles []string) (names []string) {
	for _, role := range roles {
		found, err := try(p, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: root, Role: role})
		if err != nil {
			return append(names, err.Error())
		}
		for _, n := range found.Nodes {
			if !n.Ignored {
				names = append(names, role+" "+text(n.Name))
			}
		}
	}
	return names
}

func text(v *accessibility.Value) (s string) {
	if v != nil {
		_ = json.Unmarshal(v.Value, &s) // "" for what is no text
	}
	return s
}
