package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// surveyNew surveys a server that is to be stored, and completes it with its installation and its version of PostgreSQL.
// VALIDATION_ERROR names what is wrong.
func (o *Operator) surveyNew(ctx context.Context, s *server.Server, version string) (server.Survey, error) {
	seen := o.base.Fleet.Survey(ctx, *s)
	if wrong := server.FirstWrong(s.Judge(seen, o.base.Clock.Now(), version)); wrong != nil {
		return seen, refusalOf(*wrong)
	}
	s.Installation, s.PostgresVersion = seen.Installation, seen.PostgresVersion
	return seen, o.notRegistered(ctx, *s)
}

// refusalOf says in one line what is wrong, and what to do.
func refusalOf(f server.Finding) error {
	field := f.Setting
	if field == "" {
		field = "agentUrl"
	}
	return fault.Invalid(field, "%s: %s", f.Found, f.Do)
}

// notRegistered refuses a server that has another name already.
func (o *Operator) notRegistered(ctx context.Context, s server.Server) error {
	other, err := o.registered(ctx, s)
	if err == nil && other != nil {
		err = fault.Invalid("agentUrl", "%s", sameServer(s, *other))
	}
	return err
}

func sameServer(s, other server.Server) string {
	return fmt.Sprintf("%s leads to the server that is registered as %s already, with %s", s.AgentURL, other.Name, other.AgentURL)
}

// registered is another registration of the same server; nil where there is none. Those that have not said yet which they are
// are asked.
func (o *Operator) registered(ctx context.Context, s server.Server) (*server.Server, error) {
	list, err := o.Servers(ctx)
	if err != nil {
		return nil, err
	}
	var asked sync.WaitGroup
	for i := range list {
		if list[i].Installation == "" && list[i].ID != s.ID {
			asked.Go(func() { list[i].Installation = o.base.Fleet.Survey(ctx, list[i]).Installation })
		}
	}
	asked.Wait()
	for i := range list {
		if list[i].ID != s.ID && list[i].Installation == s.Installation {
			return &list[i], nil
		}
	}
	return nil, nil
}

// Server returns a registered server, and what is on it. VALIDATION_ERROR on "server" where there is none.
func (o *Operator) Server(ctx context.Context, of id.ServerID) (s server.Server, n server.Contents, err error) {
	err = o.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if s, err = tx.Servers().Get(ctx, of); err != nil {
			return notFound(err, "server")
		}
		n, err = tx.Servers().Contents(ctx, of)
		return err
	})
	return s, n, err
}

// Filled is a server with what is on it.
type Filled struct {
	server.Server
	server.Contents
}

// Fleet lists the servers with what is on them.
func (o *Operator) Fleet(ctx context.Context) ([]Filled, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (fleet []Filled, err error) {
		list, err := tx.Servers().List(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			has, err := tx.Servers().Contents(ctx, s.ID)
			if err != nil {
				return nil, err
			}
			fleet = append(fleet, Filled{s, has})
		}
		return fleet, nil
	})
}

// CheckServer checks a registered server. If its installation is not known yet, it is stored. version is this
// program's. VALIDATION_ERROR on "server" where there is none.
func (o *Operator) CheckServer(
	ctx context.Context, of id.ServerID, version string,
) (server.Server, []server.Finding, error) {
	s, _, err := o.Server(ctx, of)
	if err != nil {
		return s, nil, err
	}
	seen := o.base.Fleet.Survey(ctx, s)
	found := s.Judge(seen, o.base.Clock.Now(), version)
	if s.Installation != "" || seen.Installation == "" {
		return s, found, nil
	}
	s.Installation, s.PostgresVersion = seen.Installation, seen.PostgresVersion
	other, err := o.registered(ctx, s)
	if err != nil {
		return s, found, err
	}
	if other != nil {
		i := slices.IndexFunc(found, func(f server.Finding) bool { return f.Check == server.CheckInstallation })
		found[i] = server.Finding{
			Check: server.CheckInstallation, Verdict: server.Wrong, Found: sameServer(s, *other), Do: "keep one of the two registrations",
		}
		return s, found, nil
	}
	return s, found, o.remember(ctx, s)
}

// Checked is what a check of a server has found.
type Checked struct {
	Server   server.Server
	Findings []server.Finding
}

// checksAtOnce bounds how many servers are asked at a time.
const checksAtOnce = 16

// CheckServers is CheckServer for all servers.
func (o *Operator) CheckServers(ctx context.Context, version string) ([]Checked, error) {
	list, err := o.Servers(ctx)
	if err != nil {
		return nil, err
	}
	all, failed := make([]Checked, len(list)), make([]error, len(list))
	var checks sync.WaitGroup
	free := make(chan struct{}, checksAtOnce)
	for i, s := range list {
		free <- struct{}{}
		checks.Go(func() {
			all[i].Server, all[i].Findings, failed[i] = o.CheckServer(ctx, s.ID, version)
			<-free
		})
	}
	checks.Wait()
	return all, errors.Join(failed...)
}

// remember stores the installation of a server and its version of PostgreSQL, unless that has been done meanwhile.
func (o *Operator) remember(ctx context.Context, s server.Server) error {
	return o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		stored, err := lockServer(ctx, tx, s.ID)
		if err != nil || stored.Installation != "" {
			return err
		}
		stored.Installation, stored.PostgresVersion = s.Installation, cmp.Or(stored.PostgresVersion, s.PostgresVersion)
		return tx.Servers().Save(ctx, stored)
	})
}

// ServerChange is what is to change of a server; nil and empty fields stay.
type ServerChange struct {
	AgentURL, Secret, PublicHost      string
	CA                                *string // empty: the system's roots
	PublicPort, Capacity, Connections *int
	Enabled                           *bool

	Version   string // of this program
	Unchecked bool   // do not check the server first
}

// reaches reports whether the agent is reached in another way after the change.
func (c ServerChange) reaches() bool { return c.AgentURL != "" || c.Secret != "" || c.CA != nil }

func (c ServerChange) apply(s *server.Server) {
	for _, text := range []struct {
		to   *string
		from string
	}{{&s.AgentURL, c.AgentURL}, {&s.PublicHost, c.PublicHost}} {
		if text.from != "" {
			*text.to = text.from
		}
	}
	for _, number := range []struct{ to, from *int }{
		{&s.PublicPort, c.PublicPort}, {&s.Capacity, c.Capacity}, {&s.Connections, c.Connections},
	} {
		if number.from != nil {
			*number.to = *number.from
		}
	}
	if c.CA != nil {
		s.CA = *c.CA
	}
	if c.Enabled != nil {
		s.Enabled = *c.Enabled
	}
}

// SetServer changes a server. Where its agent is to be reached in another way, that is tried before anything is stored: it must
// be the same server. VALIDATION_ERROR names the field, and what to do.
func (o *Operator) SetServer(ctx context.Context, of id.ServerID, c ServerChange) (server.Server, error) {
	s, _, err := o.Server(ctx, of)
	if err != nil {
		return s, err
	}
	sealed := s.SealedSecret
	if c.Secret != "" {
		if err := server.CheckSecret(c.Secret); err != nil {
			return s, fault.Invalid("agentSecret", "%s", err)
		}
		if sealed, err = o.base.Secrets.Seal([]byte(c.Secret), s.SecretContext()); err != nil {
			return s, err
		}
	}
	c.apply(&s)
	if err := s.Validate(); err != nil {
		return s, err
	}
	s.SealedSecret = sealed
	if c.reaches() && !c.Unchecked {
		if _, err := o.surveyNew(ctx, &s, c.Version); err != nil {
			return s, err
		}
	}
	installation, postgres := s.Installation, s.PostgresVersion
	return o.ChangeServer(ctx, of, func(stored *server.Server) {
		c.apply(stored)
		if c.Secret != "" {
			stored.SealedSecret = sealed
		}
		stored.Installation, stored.PostgresVersion = installation, cmp.Or(stored.PostgresVersion, postgres)
	})
}

// RemoveServer removes a server that has nothing. A creation that is placed at the same moment is either seen, or placed
// elsewhere. VALIDATION_ERROR on "server": there is none, it is in use, or it is the last one to whose version ways back
// lead.
func (o *Operator) RemoveServer(ctx context.Context, of id.ServerID) (server.Server, error) {
	return o.removeServer(ctx, of, false)
}

// RemoveServerAndBackups is RemoveServer, also of a server that has backups of databases that have left it, which could not be
// carried over: these are given up, and stay marked as damaged.
func (o *Operator) RemoveServerAndBackups(ctx context.Context, of id.ServerID) (server.Server, error) {
	return o.removeServer(ctx, of, true)
}

func (o *Operator) removeServer(ctx context.Context, of id.ServerID, lose bool) (s server.Server, err error) {
	err = o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if err := moves.KeepsWaysBack(ctx, tx, of); err != nil {
			return err
		}
		if s, err = lockServer(ctx, tx, of); err != nil {
			return err
		}
		n, err := tx.Servers().Contents(ctx, of)
		if err != nil {
			return err
		}
		about := audit.Details{"serverId": string(s.ID), "server": s.Name}
		if lose && n.Kept > 0 {
			about["backupsLost"] = strconv.Itoa(n.Kept)
			n.Kept = 0
		}
		if err := n.Removable(s.Name); err != nil {
			return err
		}
		if err := tx.Servers().Remove(ctx, of); err != nil {
			return err
		}
		return o.record(ctx, tx, "", audit.ServerRemoved, about)
	})
	if errors.Is(err, ports.ErrReferenced) {
		err = fault.Invalid("server", "%s got a database just now", s.Name)
	}
	return s, err
}
