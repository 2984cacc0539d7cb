package main_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// TestFailover has the primary of the metadata hang, as a machine that is gone does, and promotes its standby. Two API hosts with
// the settings of every installation write to that within 20 s.
func TestFailover(t *testing.T) {
	t.Parallel()
	var h hosts
	pair := clustertest.NewPair(t, func(primary *cluster.Postgres) { h = newHosts(t, primary.URL("postgres")) })
	h.metadataURL = strings.Replace(h.metadataURL, pair.Primary.Address(),
		pair.Primary.Address()+","+pair.Standby.Address(), 1)
	account := h.admin(t, "account", "create", "--email=a@example.com", "--name=A", "--plan=pro")["accountId"]
	key := fmt.Sprint(h.admin(t, "key", "create", "--account", fmt.Sprint(account), "--label=failover")["apiKey"])
	apis := make([]*apiclient.Client, 2)
	for i := range apis {
		at, ops := freeAddress(t), freeAddress(t)
		h.start(t, "api", "--listen", at, "--ops-listen", ops).awaitReady(ops)
		apis[i] = check.Must(stack.Client("http://"+at, key, nil))(t)
	}
	hook := check.Must(apis[0].Webhooks.Create(t.Context(), wire.CreateWebhook{URL: "https://198.41.0.9/"}))(t).ID
	check.Must(apis[1].Webhooks.RotateSecret(t.Context(), hook))(t)

	check.NoError(t, pair.Primary.Freeze())
	pair.Promote(t)
	promoted := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), check.Patience)
	defer cancel()
	var writing sync.WaitGroup
	for _, api := range apis {
		writing.Go(func() {
			for _, err := api.Webhooks.RotateSecret(ctx, hook); err != nil; _, err = api.Webhooks.RotateSecret(ctx, hook) {
				select {
				case <-ctx.Done():
					t.Errorf("a host does not write again: %v", err)
					return
				case <-time.After(betweenWrites):
				}
			}
			took := time.Since(promoted)
			t.Logf("a host writes again after %s", took)
			if took > backWithin {
				t.Errorf("that is more than %s", backWithin)
			}
		})
	}
	writing.Wait()
}

const (
	// backWithin is how long after a promotion every host writes again.
	backWithin = 20 * time.Second
	// betweenWrites keeps a client below the rate of an account.
	betweenWrites = 500 * time.Millisecond
)
