package operator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/ports"
)

func TestListsAreReadInPages(t *testing.T) {
	position := func(n int) ports.Position { return ports.Position{At: time.Unix(int64(n), 0), ID: fmt.Sprint(n)} }
	for total := range 8 {
		all := make([]int, total)
		for n := range all {
			all[n] = n
		}
		for length := 1; length < 5; length++ {
			for limit := range 10 {
				asked := 0
				got, err := paged(ports.Page{Limit: limit}, length, position, func(p ports.Page) ([]int, error) {
					asked += p.Limit
					from := 0
					if p.After != nil {
						from = 1 + int(p.After.At.Unix())
					}
					if p.Limit < 1 || p.Limit > length {
						t.Errorf("a page of %d", p.Limit)
					}
					return all[from:min(total, from+p.Limit)], nil
				})
				want := all
				if limit > 0 {
					want = all[:min(limit, total)]
				}
				if err != nil || !slices.Equal(got, want) || limit > 0 && asked > limit+length {
					t.Errorf("%d of %d in pages of %d: %v, %v", limit, total, length, got, err)
				}
			}
		}
	}
}
