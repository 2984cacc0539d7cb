// Package abuse_test lets one customer take as much as the service gives, beside a bystander of another account who creates,
// queries, downloads, backs up and rotates. Every request of the bystander must succeed; with -figures it must also stay about
// as fast as on an idle service.
package abuse_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
)

var figures = flag.Bool("figures", false, "measure the bystander beside each abuse, and hold the figures to their limit")

// patience bounds one request or wait of the bystander. It is far above what any of them takes.
const patience = 30 * time.Second

// TestBystander plays the abuses one after another on one stack or, with -figures, each on its own.
func TestBystander(t *testing.T) {
	if *figures {
		measureAll(t)
		return
	}
	if !sample.Turn(t, 3) { // its world takes longer to start than an abuse to play
		return
	}
	list := sample.OneIn(t, 10, abuses)
	w := startWorld(t, slices.ContainsFunc(list, func(a abuse) bool { return a.archived }))
	b := newBystander(t, w)
	b.round(t, few)
	for _, a := range list {
		t.Run(a.name, func(t *testing.T) { a.play(t, b, few) })
		b.round(t, one) // whatever the abuse left behind
	}
	stacktest.WantHealthy(t, w)
}

// measureAll plays each abuse on a stack of its own, and compares with the same stack while it was idle: every further database
// and role of a server makes creations a little slower.
func measureAll(t *testing.T) {
	tried := &table{title: "while it is tried (p99)", measures: lastingMeasures, figure: p99, most: most}
	after := &table{title: "after its end (median)", measures: lastingMeasures, figure: median, most: fair}
	beside := &table{
		title: fmt.Sprintf("beside (p99 of %s and %s, else median)", queries, reads), measures: measures, figure: usual, most: most,
	}
	for _, a := range abuses {
		t.Run(a.name, func(t *testing.T) {
			w := startWorld(t, a.archived)
			b := newBystander(t, w)
			b.round(t, few) // what is slow only once, such as the first connection of each pool, is no figure
			if a.shared != nil {
				idle := b.works(t, lasts)
				computing := idle
				if a.computes != nil {
					t.Run("computes", func(t *testing.T) { // it ends with this test
						a.computes(t, newMallory(t, w, abuse{name: a.name + " not"}))
						computing = b.works(t, lasts)
					})
				}
				during, later := a.last(t, b, lasts)
				tried.add(t, a, computing, during)
				after.add(t, a, idle, later)
			} else {
				idle := b.round(t, many)
				beside.add(t, a, idle, a.play(t, b, many))
			}
			b.round(t, one)
			stacktest.WantHealthy(t, w)
		})
	}
	for _, each := range []*table{tried, after, beside} {
		fmt.Print(each)
	}
}

// play has the bystander do everything so often beside the abuse, and returns how long each request took.
func (a abuse) play(t *testing.T, b *bystander, times often) map[string][]time.Duration {
	t.Helper()
	if a.shared != nil {
		a.last(t, b, lastsSampled)
		return nil
	}
	stillOn := a.begin(t, newMallory(t, b.world, a))
	took := b.round(t, times)
	if stillOn != nil {
		stillOn(t)
	}
	return took
}

func startWorld(t *testing.T, archived bool) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := stacktest.Start(ctx, t, stack.Options{
		Durable: *figures, AgentFlags: agentFlags, InitFlags: initFlags, Archive: archived,
	})
	w := &world{Stack: s, agent: s.FirstAgent()}
	w.asSuperuser = w.superuser(t)
	var err error
	w.api, err = s.StartAPI(ctx, "", apiFlags...)
	noError(t, err)
	w.batch = must(s.StartBatch(ctx, ""))(t)
	return w
}

var noError = check.NoError

func must[T any](result T, err error) func(testing.TB) T { return check.Must(result, err) }
