package svc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pgherd/pgherd/acceptance/driver"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// service is what a script runs against.
type service struct {
	spec.World
	account spec.Account
	// keys are those of the script, by the variables that hold them.
	keys map[string]spec.Key
	// client is the account's own, which does not go through the proxy.
	client spec.Client
	proxy  *proxy
	masks  masks

	releaseBackups func()
	endWithdrawal  func() error
	delivered      int // how many deliveries the script has had
	tokens         int // how many tokens of a CI system were made
}

type serviceKey struct{}

// serviceOf returns the service of a script.
func serviceOf(ts *testscript.TestScript) *service { return ts.Value(serviceKey{}).(*service) }

// setup makes the service of a script.
func setup(env *testscript.Env) error {
	t := env.T().(testing.TB) // as Env.T says
	w, hasten := driver.Still(t)
	s := &service{World: w, keys: map[string]spec.Key{}}
	var err error
	if s.account, err = s.Operator.NewAccount("business"); err != nil {
		return err
	}
	key, err := s.Operator.NewKey(s.account)
	if err != nil {
		return err
	}
	own, err := s.Operator.NewKey(s.account)
	if err != nil {
		return err
	}
	s.keys["SVC_API_KEY"], s.client = key, s.Hosts[0](own.Text)
	if s.proxy, err = newProxy(s.client.URL, s.Clock); err != nil {
		return err
	}
	env.Defer(s.proxy.close)
	env.Defer(inBackground(t, hasten))
	ca := filepath.Join(env.WorkDir, "ca.pem")
	if err := os.WriteFile(ca, s.proxy.authority(), 0o600); err != nil {
		return err
	}
	home, config := filepath.Join(env.WorkDir, "home"), filepath.Join(env.WorkDir, "config")
	for _, dir := range []string{home, config} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": config, "TZ": "UTC", "TERM": "xterm-256color",
		"SVC_BASE_URL": s.proxy.plain.URL, "SVC_API_KEY": key.Text, "TLS_URL": s.proxy.secure.URL, "TLS_CA_FILE": ca,
		"ACCOUNT_ID": string(s.account.ID), "OWNER_EMAIL": s.account.Email,
	} {
		env.Setenv(name, value)
	}
	env.Values[serviceKey{}] = s
	return nil
}

// turnEvery is how often open operations get on.
const turnEvery = 20 * time.Millisecond

// inBackground has open operations get on until end is called.
func inBackground(t testing.TB, hasten func() error) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(turnEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := hasten(); err != nil {
					t.Error(err)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); running.Wait() }
}

// database finds a database of the account by name. What is no name is taken for an ID: of one that is deleted, say.
func (s *service) database(nameOrID string) (spec.Created, error) {
	for d, err := range s.client.Databases.List().All(context.Background()) {
		if err != nil {
			return spec.Created{}, err
		}
		if d.Name == nameOrID || string(d.ID) == nameOrID {
			return spec.Created{CreatedDatabase: wire.CreatedDatabase{Database: d}}, nil
		}
	}
	if one, err := id.Parse[id.DatabaseID](nameOrID); err == nil {
		return spec.Created{CreatedDatabase: wire.CreatedDatabase{Database: wire.Database{ID: one}}}, nil
	}
	return spec.Created{}, fmt.Errorf("the account has no database %s", nameOrID)
}
