package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ascii"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Operators call things by their IDs or by names. What has the form of an ID is one: customers choose names, and none of them
// may look like another's ID. A name that several things have is refused with the IDs of them all. Errors are
// VALIDATION_ERROR on the flag that holds the text.

// AccountNamed finds an account by its ID, or by its owner's email address or name. A text with an @ is an address: what others
// call themselves neither passes for it nor hides it.
func (o *Operator) AccountNamed(ctx context.Context, flag, text string) (id.AccountID, error) {
	what := thing{flag, "account", "account list"}
	filter := ports.AccountFilter{Owner: text}
	if named, is := asID[id.AccountID](text); is {
		filter = ports.AccountFilter{ID: named}
	} else if strings.Contains(text, "@") {
		address, err := account.ValidateEmail(text)
		if err != nil {
			return resolve[id.AccountID](what, text, nil)
		}
		filter.Owner = address
	}
	found, err := fromDirectory(ctx, o, func(ctx context.Context, d ports.Directory) ([]ports.AccountEntry, error) {
		return d.Accounts(ctx, filter, ports.Page{Limit: mostNamed})
	})
	if err != nil {
		return "", err
	}
	return resolve(what, text, candidates(found, ofOwner))
}

func ofOwner(a ports.AccountEntry) (id.AccountID, string) { return a.ID, "of " + a.Email }

// DatabaseNamed finds a database, also a deleted one, by its ID or name.
func (o *Operator) DatabaseNamed(ctx context.Context, flag, text string) (id.DatabaseID, error) {
	filter := ports.DatabaseFilter{Name: text}
	if named, is := asID[id.DatabaseID](text); is {
		filter = ports.DatabaseFilter{ID: named}
	}
	found, err := fromDirectory(ctx, o, func(ctx context.Context, d ports.Directory) ([]ports.DatabaseEntry, error) {
		return d.Databases(ctx, filter, ports.Page{Limit: mostNamed})
	})
	if err != nil {
		return "", err
	}
	return resolve(thing{flag, "database", "database list"}, text,
		candidates(found, func(r ports.DatabaseEntry) (id.DatabaseID, string) {
			return r.ID, fmt.Sprintf("%s on server %s", r.Status, r.Server)
		}))
}

// PastDatabaseNamed is DatabaseNamed for what outlives a database, such as its log: an ID may also be that of one that is
// purged, while an operation or an entry of the log is left of it.
func (o *Operator) PastDatabaseNamed(ctx context.Context, flag, text string) (id.DatabaseID, error) {
	named, is := asID[id.DatabaseID](text)
	if !is {
		return o.DatabaseNamed(ctx, flag, text)
	}
	was, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (bool, error) {
		return everWas(ctx, tx, named)
	})
	if err == nil && !was {
		err = errUnknown(flag)
	}
	return named, err
}

func everWas(ctx context.Context, tx ports.Tx, db id.DatabaseID) (bool, error) {
	one := ports.Page{Limit: 1}
	records, err := tx.Directory().Databases(ctx, ports.DatabaseFilter{ID: db}, one)
	if err != nil || len(records) > 0 {
		return true, err
	}
	work, err := tx.Operations().Find(ctx, ports.OperationFilter{DatabaseID: db}, one)
	if err != nil || len(work) > 0 {
		return true, err
	}
	log, err := tx.Audit().List(ctx, db, one)
	return len(log) > 0, err
}

// ServerNamed finds a server by its ID or name.
func (o *Operator) ServerNamed(ctx context.Context, flag, text string) (id.ServerID, error) {
	servers, err := o.Servers(ctx)
	if err != nil {
		return "", err
	}
	named, isID := asID[id.ServerID](text)
	var found []candidate[id.ServerID]
	for _, s := range servers {
		if s.ID == named || !isID && s.Name == text {
			found = append(found, candidate[id.ServerID]{s.ID, "named " + s.Name})
		}
	}
	return resolve(thing{flag, "server", "server list"}, text, found)
}

// NamespaceNamed finds a CI namespace, also a revoked one, by its ID or name.
func (o *Operator) NamespaceNamed(ctx context.Context, flag, text string) (id.NamespaceID, error) {
	if named, is := asID[id.NamespaceID](text); is {
		return named, nil // its use case says whether there is one
	}
	found, err := fromDirectory(ctx, o, func(ctx context.Context, d ports.Directory) ([]ports.NamespaceEntry, error) {
		return d.Namespaces(ctx, ports.NamespaceFilter{Name: text}, ports.Page{Limit: mostNamed})
	})
	if err != nil {
		return "", err
	}
	return resolve(thing{flag, "namespace", "ci-namespace list"}, text,
		candidates(found, func(n ports.NamespaceEntry) (id.NamespaceID, string) { return n.ID, "of " + n.Email }))
}

// notFound is base.NotFound for a thing that an operator calls by its ID.
func notFound(err error, flag string) error { return base.NotFound(err, errUnknown(flag)) }

// errUnknown is the error for an ID that nothing has.
func errUnknown(flag string) error { return fault.Invalid(flag, "does not exist") }

// asID is the ID that a text has the form of.
func asID[T ~string](text string) (T, bool) {
	v, err := id.Parse[T](ascii.Lower(text))
	return v, err == nil
}

// fromDirectory reads from the directory.
func fromDirectory[T any](ctx context.Context, o *Operator, fn func(context.Context, ports.Directory) (T, error)) (T, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (T, error) { return fn(ctx, tx.Directory()) })
}

// mostNamed bounds the things that are read, and mostSaid those that an error names, where a name is not unique.
const (
	mostNamed = 100
	mostSaid  = 5
)

// thing is what a text is to name: the flag that holds it, the word for it, and the command that lists what there is.
type thing struct{ flag, word, lists string }

// candidate is one that a text may mean, with what distinguishes it from the others.
type candidate[T ~string] struct {
	id    T
	about string
}

func candidates[T ~string, E any](found []E, of func(E) (T, string)) []candidate[T] {
	list := make([]candidate[T], len(found))
	for i, e := range found {
		list[i].id, list[i].about = of(e)
	}
	return list
}

// resolve returns the one that a text means.
func resolve[T ~string](what thing, text string, found []candidate[T]) (T, error) {
	switch len(found) {
	case 0:
		return "", fault.Invalid(what.flag, "no %s is called %q; pgherd admin %s shows them", what.word, text, what.lists)
	case 1:
		return found[0].id, nil
	}
	var said []string
	for _, c := range found[:min(len(found), mostSaid)] {
		said = append(said, fmt.Sprintf("%s (%s)", c.id, c.about))
	}
	if len(found) > mostSaid {
		said = append(said, "and others")
	}
	return "", fault.Invalid(what.flag, "several are called %q; give the ID: %s", text, strings.Join(said, ", "))
}
