package web_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/guests"
)

// Where as many are admitted as may be of one source, the next is refused at once, and served as soon as they are through. Those
// with a session and those without do not stand in each other's way, and what asks nobody for anything is always there.
func TestFullDesksRefuse(t *testing.T) {
	goOn := make(chan struct{})
	var inside atomic.Int64
	w := newWorld(t, []web.Page{
		web.Get("thing", "/thing", plain("thing")),
		web.Get("door", "/door", func(*web.Request) (web.Answer, error) {
			inside.Add(1)
			<-goOn
			return &web.View{}, nil
		}).For(web.Anybody),
	})
	style := attribute(elements(w.direct(w.request("/thing", nil, as("pat"))).parsed(t), "link")[1], "href")
	w.gate.through = goOn
	var asking sync.WaitGroup
	fill := func(path string, who func(*http.Request), there func() int) {
		for range guests.Admitted / 2 {
			asking.Go(func() { w.direct(w.request(path, nil, who)) })
		}
		check.Eventually(t, path+": not all are inside", func() bool { return there() == guests.Admitted/2 })
	}
	refused := func(path string) {
		t.Helper()
		if a := w.direct(w.request(path, nil, as("pat"))); a.status != 503 || a.Get("Retry-After") != "1" ||
			!strings.Contains(a.body, "SERVER_BUSY") {
			t.Errorf("%s: %d, Retry-After %q: %s", path, a.status, a.Get("Retry-After"), a.body)
		}
	}
	fill("/door", as("nobody"), func() int { return int(inside.Load()) })
	refused("/door")
	fill("/thing", as("pat"), func() int { return len(w.gate.tokens()) - 1 })
	refused("/thing")
	if a := w.direct(w.request(style, nil)); a.status != 200 {
		t.Errorf("the style: %d", a.status)
	}
	close(goOn)
	asking.Wait()
	for _, path := range []string{"/door", "/thing"} {
		if a := w.direct(w.request(path, nil, as("pat"))); a.status != 200 {
			t.Errorf("%s: %d once all are through", path, a.status)
		}
	}
}
