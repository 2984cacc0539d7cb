// Package crash_test kills the parts of a real pgherd, one at a time and at the worst moments, and shows that the next start
// finishes or cleanly fails the work: nothing is lost, nothing is left over, and no outcome is made up.
package crash_test

import (
	"context"
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
)

// Most of the time a case waits, for leases and for processes to start: twice as many stacks as cores share the machine.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	sample.Tests(40, "TestKilled", "TestEveryPointHasItsCase")
	os.Exit(m.Run())
}

// leaseHold is short, because tests wait for leases to end.
const leaseHold = 2 * time.Second

const patience = stacktest.Patience

var (
	noError    = check.NoError
	soon       = stacktest.Soon
	eventually = stacktest.Eventually
	codeOf     = stacktest.Code
	refused    = stacktest.Refused
)

func must[T any](result T, err error) func(testing.TB) T { return check.Must(result, err) }

// startStack runs a stack of the test's own.
func startStack(t *testing.T, change ...func(*stack.Options)) *world {
	t.Helper()
	options := stack.Options{LeaseHold: leaseHold}
	for _, c := range change {
		c(&options)
	}
	ctx, cancel := context.WithTimeout(t.Context(), starting)
	defer cancel()
	return newWorld(t, stacktest.Start(ctx, t, options, stack.CrashPoints))
}

// starting bounds the start of a whole server: each of its programs may take long on a busy machine.
const starting = 2 * patience

// beside runs another server, "two".
func (w *world) beside(t *testing.T, o stack.Options) *stack.Stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), starting)
	defer cancel()
	return stacktest.Beside(ctx, t, w.Stack, "two", o)
}

// startOffsite runs one that keeps its backups in an object store.
func startOffsite(t *testing.T) *world {
	t.Helper()
	const prefix = "server"
	objects := objectstore.Start(t)
	w := startStack(t, func(o *stack.Options) { o.AgentFlags, o.BlobDir = objects.Flags(prefix), objects.Blobs(prefix) })
	w.store = objects
	return w
}
