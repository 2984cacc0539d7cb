package dev

import (
	"crypto/rand"
	"crypto/subtle"
	"sync"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/id"
)

// entrance is a link that logs the first person in, once. Each start makes another one.
type entrance struct {
	account id.AccountID
	secret  string

	mu   sync.Mutex
	used bool
}

func newEntrance(of id.AccountID) *entrance { return &entrance{account: of, secret: rand.Text()} }

const enterPath = "/dev/enter/"

func (e *entrance) path() string { return enterPath + e.secret }

// take reports whether a link is right, and uses it up.
func (e *entrance) take(presented string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	right := !e.used && subtle.ConstantTimeCompare([]byte(presented), []byte(e.secret)) == 1
	e.used = e.used || right
	return right
}

func (e *entrance) pages(cp *controlplane.ControlPlane) []web.Page {
	return []web.Page{web.Get("dev.enter", enterPath+"{name}", func(r *web.Request) (web.Answer, error) {
		if !e.take(r.Param("name")) {
			return web.Redirect{To: web.LogInPath}, nil
		}
		of, err := cp.Operator.AccountDetails(r.Context(), e.account)
		if err != nil {
			return nil, err
		}
		in, err := cp.Operator.LogInUser(r.Context(), of.Email, people.Client{Address: r.Client, Agent: r.Agent(), RequestID: r.ID})
		if err != nil {
			return nil, err
		}
		r.SetToken(in.Token)
		return web.Redirect{To: "/"}, nil
	}).For(web.Anybody)}
}
