package dashboard

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// consolePath is where the operator's console is.
const consolePath = "/operator"

// ConsoleHome leads operators to their console.
var ConsoleHome = web.Link{Text: "Operator", Href: consolePath}

// The parts of the console.
const (
	fleetTab        = ""
	orderTab        = "/operations"
	accountTab      = "/accounts"
	databaseTab     = "/databases"
	installationTab = "/installation"
	doctorTab       = "/doctor"
	auditTab        = "/audit"
	ringTab         = "/keyring"
)

// consolePages are the operator's. What changes something is a use case of operator.Console.
func (s *site) consolePages() []web.Page {
	if !s.Console {
		return nil
	}
	pages := slices.Concat(
		s.fleetPages(), s.orderPages(), s.accountListPages(), s.databaseListPages(), s.installationPages(), s.doctorPages(),
		s.auditPages(), s.ringPages(),
	)
	for i := range pages {
		pages[i].Who = web.Operator
	}
	return pages
}

// look is a page that only shows something.
func (s *site) look(
	show func(*web.Request, *operator.Operator) (web.Answer, error),
) func(*web.Request) (web.Answer, error) {
	return func(r *web.Request) (web.Answer, error) {
		o, err := s.use.Console.Look(r.Caller)
		if err != nil {
			return nil, err
		}
		return show(r, o)
	}
}

// order has an operator change something, for the reason that the form has.
func (s *site) order(r *web.Request, do func(context.Context, *operator.Operator, operation.Order) error) error {
	return s.use.Console.Change(r.Context(), r.Caller, r.Field("reason"), do)
}

// ordered is order, after which a page is shown.
func (s *site) ordered(
	r *web.Request, to string, do func(context.Context, *operator.Operator, operation.Order) error,
) (web.Answer, error) {
	return web.Redirect{To: to}, s.order(r, do)
}

// reasonField is what each form of the console has.
func reasonField() *web.Field {
	return &web.Field{Name: "reason", Label: "Why", Max: 300, Complete: "off", Help: "The activity log has it, with your name."}
}

// console is what is around a part of the console.
func console(tab, title string) *web.View {
	v := &web.View{Title: "Operator", Part: title}
	for _, t := range []struct{ text, tab string }{
		{"Fleet", fleetTab}, {"Operations", orderTab}, {"Accounts", accountTab}, {"Databases", databaseTab},
		{"Installation", installationTab}, {"Doctor", doctorTab}, {"Audit", auditTab}, {"Key ring", ringTab},
	} {
		v.Tabs = append(v.Tabs, web.Link{Text: t.text, Href: consolePath + t.tab, Here: t.tab == tab})
	}
	return v
}

// below is what is around a page below a part of the console.
func below(tab, part, title string) *web.View {
	v := console(tab, "")
	v.Title, v.Part = title, ""
	v.Trail = []web.Link{{Text: "Operator", Href: consolePath}, {Text: part, Href: consolePath + tab}}
	return v
}

// found is nothing for what a path names and is not there.
func found(err error) error {
	if fault.Has(err, fault.ValidationError) {
		return web.ErrNothing()
	}
	return err
}

// mostSearched is how long a text to look for may be: as long as an address.
const mostSearched = 254

// bounded is what a list is bounded to; empty where it is not. VALIDATION_ERROR on the parameter.
func bounded[T ~string](r *web.Request, name string, of []T) (T, error) {
	text := r.Query(name)
	if text == "" {
		return "", nil
	}
	return fault.OneOf(name, text, of...)
}

// boundedByID is the ID of what a list is bounded to; empty where it is not. What is no ID bounds no page that there is.
func boundedByID[T ~string](r *web.Request, name string) (T, error) {
	text := r.Query(name)
	if text == "" {
		return "", nil
	}
	of, err := id.Parse[T](text)
	if err != nil {
		return "", web.ErrNothing()
	}
	return of, nil
}

// nameCell is a cell with a name that leads on, or a word where there is none.
func nameCell(name, href string) web.Cell {
	if name == "" {
		return web.Words("–")
	}
	return web.Cell{Text: name, Href: href}
}
