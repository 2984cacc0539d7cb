package pooler

import (
	"context"
	"fmt"
	"slices"
)

// Load is what Shed found and did.
type Load struct {
	// Clients is what counted against Limit, which is max_client_conn, when Shed began.
	Clients, Limit int
	Ended          []Ended
}

// Ended says how many clients of a database were ended.
type Ended struct {
	Holding
	Idle, Waiting int
}

// shedLooks bounds the looks of one call, for others come while some are ended.
const shedLooks = 20

// Shed looks how many clients PgBouncer holds, which costs it next to nothing. Above highMark percent of the limit it reads the
// clients and ends those of surplus, until there are none. With an error it returns what it did before.
func (c *Console) Shed(ctx context.Context, holdings func(context.Context) ([]Holding, error)) (Load, error) {
	load := Load{Limit: c.settings.MaxClients}
	var err error
	if load.Clients, err = c.used(ctx); err != nil || load.Clients <= load.Limit*highMark/100 {
		return load, err
	}
	now := census{limit: load.Limit, uncapped: c.settings.UncappedPoolSize}
	if now.holdings, err = holdings(ctx); err != nil {
		return load, fmt.Errorf("pooler: whose databases there are: %w", err)
	}
	var ended []Client
	for range shedLooks {
		some, one := c.shedSome(ctx, now)
		ended = slices.Concat(ended, some)
		if err = one; err != nil || len(some) == 0 {
			break
		}
	}
	load.Ended = tally(now.holdings, ended)
	return load, err
}

// shedSome takes one look, and returns which clients it ended. These are few, because what is known of a client is old when its
// turn comes: an idle one may have begun a transaction.
func (c *Console) shedSome(ctx context.Context, now census) (ended []Client, err error) {
	if now.total, err = c.used(ctx); err != nil {
		return nil, err
	}
	if now.clients, err = c.Clients(ctx); err != nil {
		return nil, err
	}
	chosen := now.surplus()
	chosen = chosen[:min(len(chosen), killsAtOnce)]
	if len(chosen) == 0 {
		return nil, nil
	}
	ids := make([]string, len(chosen))
	for i, client := range chosen {
		ids[i] = client.ID
	}
	closed, err := c.kill(ctx, ids)
	for i, was := range closed {
		if was {
			ended = append(ended, chosen[i])
		}
	}
	return ended, err
}

// used is the number that PgBouncer compares with max_client_conn.
func (c *Console) used(ctx context.Context) (n int, err error) {
	err = c.each(ctx, "SHOW LISTS", func(r row) error {
		if r.text("list") == "used_clients" {
			n = int(r.number("items"))
		}
		return nil
	})
	return n, err
}

// tally counts clients by database.
func tally(holdings []Holding, clients []Client) []Ended {
	idle, waiting := make(map[string]int), make(map[string]int)
	for _, client := range clients {
		if client.waiting() {
			waiting[client.Entry]++
		} else {
			idle[client.Entry]++
		}
	}
	var ended []Ended
	for _, h := range holdings {
		e := Ended{Holding: h}
		for _, entry := range EntryNames(h.Database) {
			e.Idle += idle[entry]
			e.Waiting += waiting[entry]
		}
		if e.Idle+e.Waiting > 0 {
			ended = append(ended, e)
		}
	}
	return ended
}
