// Package health collects the agent's health report (spec, section "Agent health"): from the machine, from PostgreSQL and from
// PgBouncer, all concurrently and each with its own deadline, so that a part that hangs affects only its own figures.
package health

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/health"
)

// partTime bounds each part of a report, and so the whole report.
const partTime = 2 * time.Second

// Machine gives the host's figures. A missing memory or load makes the report degraded and its field null.
type Machine interface {
	Disk(ctx context.Context) (protocol.ServerDisk, error)
	Memory(ctx context.Context) (*protocol.Memory, error)
	Load(ctx context.Context) (*protocol.Load, error)
}

// Pooler gives PgBouncer's figures, without its own console.
type Pooler interface {
	// Pools is asked for with each report.
	Pools(ctx context.Context) ([]protocol.PgBouncerPool, error)
	// Clients is as long as customers like, and asked for only where somebody wants to see it.
	Clients(ctx context.Context) ([]protocol.PgBouncerClient, error)
}

// Collector makes reports. Maintenance is the agent's connection to the maintenance database.
type Collector struct {
	Machine     Machine
	Maintenance *sql.DB
	Pooler      Pooler
	// Answers returns an error unless PostgreSQL answers; nil: the maintenance database is asked.
	Answers func(context.Context) error

	mu   sync.Mutex
	busy map[string]bool // parts that somebody still collects
	data struct {        // the last sizes
		figures dataFigures
		until   time.Time
	}
}

// dataTime is how long sizes are kept: to sum those of thousands of databases, PostgreSQL has to look at all their files.
const dataTime = time.Minute

// Report collects a report without the list of clients. It never fails: the report itself says what could not be collected. The
// error is for the log and names the missing parts.
func (c *Collector) Report(ctx context.Context) (protocol.Health, error) {
	var disk protocol.ServerDisk
	var memory *protocol.Memory
	var load *protocol.Load
	var data dataFigures
	var pools []protocol.PgBouncerPool

	diskErr := begin(ctx, c, "disk", &disk, c.Machine.Disk)
	memoryErr := begin(ctx, c, "memory", &memory, c.Machine.Memory)
	loadErr := begin(ctx, c, "load", &load, c.Machine.Load)
	connectErr := begin(ctx, c, "PostgreSQL", new(struct{}), c.connected)
	dataErr := begin(ctx, c, "data size", &data, c.dataFigures)
	poolsErr := begin(ctx, c, "pools", &pools, c.Pooler.Pools)

	capacity := errors.Join(diskErr(), memoryErr(), loadErr(), dataErr())
	postgres, pooler := connectErr(), poolsErr()
	observed := health.Observed{PostgresConnected: postgres == nil, PoolerRunning: pooler == nil, CapacityKnown: capacity == nil}
	report := protocol.Health{
		Status:            string(health.StatusOf(observed)),
		PostgresConnected: observed.PostgresConnected,
		CapacityKnown:     observed.CapacityKnown,
		PgBouncerRunning:  observed.PoolerRunning,

		ServerDisk:               disk,
		LegacyDisk:               protocol.LegacyDisk(disk),
		PostgresDataUsedBytes:    data.usedBytes,
		PostgresDataUsedPretty:   health.Pretty(data.usedBytes),
		PostgresManagedDatabases: data.databases,
		Memory:                   memory,
		Load:                     load,
		PgBouncerPoolCount:       len(pools),
		PgBouncerPools:           append([]protocol.PgBouncerPool{}, pools...), // never null
		PgBouncerClients:         []protocol.PgBouncerClient{},
		Reasons:                  []protocol.HealthReason{},
		Checks:                   []protocol.HealthCheck{},
	}
	return report, errors.Join(postgres, pooler, capacity)
}

// AddClients adds the list of clients to a report. Without an answer the report has none.
//
// A client counts as active unless it waits for a server connection. Since 1.25 PgBouncer shows a client that waits for nothing
// and holds no server connection as idle: at a transaction entry between transactions, at a session entry before its first
// statement, after which it keeps its connection, and is active, until it leaves. Earlier versions show all of them as active,
// and every version counts all of them in a pool's cl_active.
func (c *Collector) AddClients(ctx context.Context, report *protocol.Health) error {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	clients, err := c.Pooler.Clients(ctx)
	if err != nil {
		return missing{"clients", err}
	}
	report.PgBouncerClients, report.PgBouncerClientCount = append([]protocol.PgBouncerClient{}, clients...), len(clients)
	for _, client := range clients {
		if client.State == "active" || client.State == "idle" {
			report.PgBouncerActiveClientCount++
		}
	}
	return nil
}

// begin starts a part and returns a function that waits for it, at most until its deadline: a part that ignores its context is
// left behind, and its late result is dropped. It is not begun again before it has ended.
func begin[T any](
	ctx context.Context, c *Collector, name string, into *T, collect func(context.Context) (T, error),
) (wait func() error) {
	if !c.enter(name) {
		return func() error { return missing{name, errors.New("an earlier attempt has not ended")} }
	}
	ctx, cancel := context.WithTimeout(ctx, partTime)
	type outcome struct {
		value T
		err   error
	}
	found := make(chan outcome, 1)
	go func() {
		defer c.leave(name)
		value, err := collect(ctx)
		found <- outcome{value, err}
	}()
	return sync.OnceValue(func() error {
		defer cancel()
		var o outcome
		select {
		case o = <-found:
		case <-ctx.Done():
			o.err = ctx.Err()
			select { // in time, but waited for after another part that was not
			case o = <-found:
			default:
			}
		}
		if o.err != nil {
			return missing{name, o.err}
		}
		*into = o.value
		return nil
	})
}

func (c *Collector) enter(part string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy == nil {
		c.busy = map[string]bool{}
	}
	if c.busy[part] {
		return false
	}
	c.busy[part] = true
	return true
}

func (c *Collector) leave(part string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, part)
}

// missing is a part that could not be collected.
type missing struct {
	part string
	err  error
}

func (m missing) Error() string { return "health: " + m.part + ": " + m.err.Error() }
func (m missing) Unwrap() error { return m.err }
