// Package moves_test moves a database under load, and drains a server. "make moves" does so with a database of 10,000 megabytes
// and with 50 databases, and holds what is promised of how long it takes; "make test" does the same with little, and looks only
// at what has come.
package moves_test

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
)

var (
	noError = check.NoError
	soon    = stacktest.Soon
)

func TestMain(m *testing.M) {
	sample.Tests(6)
	os.Exit(m.Run())
}

func must[T any](result T, err error) func(testing.TB) T { return check.Must(result, err) }

// starting bounds the start of a whole server: each of its programs may take long on a busy machine.
const starting = 2 * stacktest.Patience

// asked is a number that the environment gives, or a small one, and whether it gives one: then it is for the figures.
func asked(t *testing.T, variable string, small int) (n int, measured bool) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return small, false
	}
	return must(strconv.Atoi(text))(t), true
}

// world is a service with one server, and the owner of an account.
type world struct {
	*stack.Stack
	options stack.Options // of every server
	account stack.Account
	api     *apiclient.Client
}

// newWorld has an account with so many databases. What is measured waits for its disk.
func newWorld(t *testing.T, databases int, measured bool) *world {
	t.Helper()
	w := &world{options: stack.Options{Durable: measured}}
	ctx, cancel := context.WithTimeout(t.Context(), starting)
	defer cancel()
	w.Stack = stacktest.Start(ctx, t, w.options)
	host := must(w.StartAPI(soon(t), ""))(t)
	must(w.StartBatch(soon(t), ""))(t)
	w.account = must(w.NewAccount(soon(t), "mover", "business", databases))(t)
	must(w.Admin(soon(t), "account", "set", "--account", w.account.ID, "--database-bytes", strconv.Itoa(1<<40)))(t)
	w.api = must(stack.Client(host.URL, w.account.Key, &http.Client{}))(t)
	return w
}

// another is one more server, and all that is made from then on may be there.
func (w *world) another(t *testing.T) *stack.Stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), starting)
	defer cancel()
	return stacktest.Beside(ctx, t, w.Stack, "other", w.options)
}

// orders runs a command of the operator's that waits for what it begins, however long that takes.
func (w *world) orders(t *testing.T, args ...string) map[string]any {
	t.Helper()
	return must(w.Admin(context.WithoutCancel(t.Context()), append(args, "--reason", "room is needed", "--wait")...))(t)
}
