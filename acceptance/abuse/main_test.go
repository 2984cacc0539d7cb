// Package abuse_test lets one customer take as much as the service gives, beside a bystander of another account who creates,
// queries, downloads, backs up and rotates. Every request of the bystander must succeed; with -figures it must also stay about
// as fast as on an idle service.
package abuse_test

import (
	"context"
	"flag"
	"fmt"
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

// TestBystander plays the abuses one after another on one stack.
func TestBystander(t *testing.T) {
	w := startWorld(t)
	often := few
	if *figures {
		often = many
	}
	b := newBystander(t, w)
	if *figures { // what is slow only once, such as the first connection of each pool, is no figure
		b.round(t, few)
	}
	results := &table{
		title: fmt.Sprintf("beside (p99 of %s and %s, else median)", queries, reads), measures: measures, figure: usual,
		idle: b.round(t, often), most: most,
	}
	var lasting *lastingTables
	if *figures {
		lasting = newLastingTables(t, b)
	}
	for _, a := range sample.OneIn(t, 8, abuses) {
		t.Run(a.name, func(t *testing.T) {
			if a.shared != nil {
				lasting.try(t, b, a)
				return
			}
			m := newMallory(t, w, a)
			stillOn := a.begin(t, m)
			results.add(a, b.round(t, often))
			if stillOn != nil {
				stillOn(t)
			}
		})
		b.round(t, one) // whatever the abuse left behind
	}
	stacktest.WantHealthy(t, w)
	if *figures {
		for _, each := range append(lasting.all(), results) {
			fmt.Print(each)
			each.check(t)
		}
	}
}

func startWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := stacktest.Start(ctx, t, stack.Options{Durable: *figures, AgentFlags: agentFlags, InitFlags: initFlags})
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
