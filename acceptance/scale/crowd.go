package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/acceptance/proc"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// crowd is an installation with one real server, whose databases become more and more.
type crowd struct {
	*stack.Measured
	settings
	// ratio is how many times as many databases there are in the end as at first: what is done with all of them takes so many
	// times as long at most.
	ratio      float64
	api, batch *stack.Host
	agent      *stack.Process
	client     *apiclient.Client
	made       []id.DatabaseID
}

const (
	// makingAtOnce is how many databases are made at a time until there are enough.
	makingAtOnce = 4
	// rolesOfOne are the logins that are made for a database beside its own.
	rolesOfOne = 3
	// changes are how often each change is made that is measured.
	changes = 11
)

// measureServer makes as many databases on one server as each size says, and measures what they cost.
func measureServer(ctx context.Context, sizes []size, s settings) (all report, err error) {
	c := &crowd{settings: s, ratio: float64(sizes[len(sizes)-1].databases) / float64(sizes[0].databases)}
	if c.Measured, err = stack.StartMeasured(ctx, "scale"); err == nil {
		err = c.open(ctx, sizes[len(sizes)-1].databases)
	}
	defer func() { err = errors.Join(err, c.End()) }()
	if err != nil {
		return nil, err
	}
	for _, n := range sizes {
		note("%d databases of one server ...", n.databases)
		figures, err := c.measure(ctx, n.databases)
		if all = append(all, column{n, figures}); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (c *crowd) open(ctx context.Context, databases int) (err error) {
	c.agent = c.FirstAgent()
	if _, err := c.Admin(ctx, "server", "set", "--server="+c.ServerID(), fmt.Sprintf("--capacity=%d", 2*databases)); err != nil {
		return err
	}
	owner, err := c.NewAccount(ctx, "owner", "business", 2*databases)
	if err != nil {
		return err
	}
	if c.api, err = c.StartAPI(ctx, ""); err != nil {
		return err
	}
	if c.batch, err = c.StartBatch(ctx, ""); err != nil {
		return err
	}
	c.client, err = stack.Client(c.api.URL, owner.Key, nil)
	return err
}

func (c *crowd) measure(ctx context.Context, databases int) (all []figure, err error) {
	for _, part := range []func(context.Context) ([]figure, error){
		func(ctx context.Context) ([]figure, error) { return c.grow(ctx, databases) },
		c.change, c.look, c.restart, c.rest,
	} {
		figures, err := part(ctx)
		for _, f := range figures {
			note("  %s: %s", f.what, f)
		}
		if all = append(all, figures...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// grow makes databases until there are as many.
func (c *crowd) grow(ctx context.Context, databases int) ([]figure, error) {
	began, first := time.Now(), len(c.made)
	more := make([]id.DatabaseID, max(0, databases-first))
	var group errgroup.Group
	group.SetLimit(makingAtOnce)
	for n := range more {
		group.Go(func() (err error) {
			if more[n], err = c.create(ctx, first+n); err != nil {
				return err
			}
			for k := range rolesOfOne {
				if err := c.createRole(ctx, more[n], k); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	c.made = append(c.made, more...)
	made := float64(len(more)) / time.Since(began).Seconds()
	return []figure{{"databases made with their logins, four at a time", made, aSecond, 0}}, nil
}

func (c *crowd) create(ctx context.Context, n int) (id.DatabaseID, error) {
	model := database.Managed
	made, err := c.client.Databases.Create(ctx, wire.CreateDatabase{
		Name: fmt.Sprintf("shop-%d", n), DisplayName: fmt.Sprintf("The shop of customer %d", n), RoleModel: &model,
	})
	return made.ID, err
}

func (c *crowd) createRole(ctx context.Context, of id.DatabaseID, n int) error {
	_, err := c.client.Roles.Create(ctx, of, wire.CreateRole{
		DisplayName: fmt.Sprintf("Reports %d", n), AccessProfile: role.ReadOnly, ConnectionLimit: 2,
	})
	return err
}

// change measures what customers do to one database, each of which changes what the pooler has.
func (c *crowd) change(ctx context.Context) (all []figure, err error) {
	for _, what := range []struct {
		name string
		do   func(n int, of id.DatabaseID) error
	}{
		{"a database, made", func(int, id.DatabaseID) error {
			one, err := c.create(ctx, len(c.made))
			if err == nil {
				c.made = append(c.made, one)
			}
			return err
		}},
		{"a role, made", func(_ int, of id.DatabaseID) error { return c.createRole(ctx, of, rolesOfOne) }},
		{"a network, allowed", func(n int, of id.DatabaseID) error {
			_, err := c.client.Allowlist.Add(ctx, of, wire.AddAllowlistEntry{CIDR: fmt.Sprintf("192.0.2.%d/32", n)})
			return err
		}},
		{"a password, rotated", func(_ int, of id.DatabaseID) error {
			_, err := c.client.Logins.Rotate(ctx, of, database.RuntimeLogin, wire.Disconnect{ConfirmDisconnect: true})
			return err
		}},
	} {
		var times []time.Duration
		before, err := c.computed()
		if err != nil {
			return all, err
		}
		for n := range changes {
			began := time.Now()
			if err := what.do(n, c.made[len(c.made)-1-n]); err != nil {
				return all, fmt.Errorf("%s: %w", what.name, err)
			}
			times = append(times, time.Since(began))
		}
		after, err := c.computed()
		if err != nil {
			return all, err
		}
		slices.Sort(times)
		all = append(all, took(what.name+", median", times[changes/2], c.ratio))
		for _, part := range partsOfServer {
			all = append(all, took(what.name+", "+part, (after[part]-before[part])/changes, c.ratio))
		}
	}
	return all, nil
}

// look measures what looks at the whole server.
func (c *crowd) look(ctx context.Context) (all []figure, err error) {
	for _, what := range []struct {
		name string
		do   func() error
	}{
		{"a check of the server", func() error { return c.CheckServer(ctx) }},
		{"the doctor", func() error { return stack.Healthy(ctx, c) }},
	} {
		began := time.Now()
		if err := what.do(); err != nil {
			return all, fmt.Errorf("%s: %w", what.name, err)
		}
		all = append(all, took(what.name, time.Since(began), c.ratio))
	}
	return all, nil
}

// restart kills the agent, and then PgBouncer, and starts them again.
func (c *crowd) restart(ctx context.Context) (all []figure, err error) {
	if err := c.agent.Kill(); err != nil {
		return nil, err
	}
	began := time.Now()
	if c.agent, err = c.LaunchAgent(""); err == nil {
		err = c.AwaitAgent(ctx, c.agent)
	}
	if err != nil {
		return nil, err
	}
	all = append(all, took("start of the agent", time.Since(began), c.ratio))
	began = time.Now()
	if err := c.Pooler.Restart(ctx); err != nil {
		return all, err
	}
	return append(all, took("restart of PgBouncer", time.Since(began), c.ratio)), nil
}

// rest measures what all parts of a server take that has nothing to do.
func (c *crowd) rest(ctx context.Context) (all []figure, err error) {
	if err := sleep(ctx, settling); err != nil {
		return nil, err
	}
	before, err := c.computed()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := sleep(ctx, c.idle); err != nil {
		return nil, err
	}
	minutes := time.Since(began).Minutes()
	after, err := c.computed()
	if err != nil {
		return nil, err
	}
	for _, part := range partsOfServer {
		all = append(all, took(idleMinute+", "+part, time.Duration(float64(after[part]-before[part])/minutes), c.ratio))
	}
	for _, one := range c.processes() {
		if one.part != "agent" && one.part != "PgBouncer" {
			continue // those of PostgreSQL share most of their memory, and hosts are measured by themselves
		}
		resident, err := proc.Resident(one.pid)
		if err != nil {
			return nil, err
		}
		all = append(all, figure{"memory, " + one.part, resident, bytes, c.ratio})
	}
	return all, nil
}

// partsOfServer are those whose processor time is measured.
var partsOfServer = []string{"agent", "PostgreSQL", "PgBouncer", "hosts"}

// process is one of a part.
type process struct {
	part string
	pid  int
}

func (c *crowd) processes() []process {
	return []process{
		{"agent", c.agent.Pid()}, {"PostgreSQL", c.Server.Pid()}, {"PgBouncer", c.Pooler.Pid()}, {"hosts", c.api.Pid()},
		{"hosts", c.batch.Pid()},
	}
}

// computed is the processor time of each part so far.
func (c *crowd) computed() (map[string]time.Duration, error) {
	all := map[string]time.Duration{}
	for _, one := range c.processes() {
		took, err := family(one.pid)
		if err != nil {
			return nil, err
		}
		all[one.part] += took
	}
	return all, nil
}
