package base

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

func TestHolders(t *testing.T) {
	at := time.Date(2026, time.January, 31, 9, 30, 0, 0, time.UTC)
	var all []server.Server
	for i := range 8 {
		all = append(all, server.Server{
			ID: id.ServerID(fmt.Sprint(i)), Enabled: true, CreatedAt: at.Add(-time.Duration(i) * time.Hour),
		})
	}
	all[7].Enabled, all[6].AwaySince = false, &at
	var got []id.ServerID
	for _, s := range holders(all) {
		got = append(got, s.ID)
	}
	if !slices.Equal(got, []id.ServerID{"5", "4", "3", "2", "1"}) {
		t.Error(got)
	}
	if few := holders(all[6:]); len(few) != 2 || few[0].ID != "6" {
		t.Error(few)
	}
}
