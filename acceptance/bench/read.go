package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	readClients   = 8
	readSlice     = 500 * time.Millisecond
	slicesPerRun  = 6
	countedReads  = 100
	mostStatement = 1
	// readKeys are used in turn: each has a rate bucket of its own.
	readKeys = 60
	// plainConnections are as many as an API host may have.
	plainConnections = 16
)

// measureRead reads one database over and over from the API host and from a handler that was written by hand.
func measureRead(ctx context.Context, b *bench) ([]row, error) {
	made, err := b.client.create(ctx, "read-me")
	if err != nil {
		return nil, err
	}
	path := "/api/v1/databases/" + string(made.ID)
	api := target{address: strings.TrimPrefix(b.api.URL, "http://"), path: path, keys: []string{b.account.Key}}
	if err := api.read(1); err != nil { // the size is read from the server now, and not again for a minute
		return nil, err
	}
	sent, err := b.heard(ctx, func() error { return api.read(countedReads) })
	if err != nil {
		return nil, err
	}
	each := float64(sent) / countedReads
	address, end, err := b.startPlain(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for len(api.keys) < readKeys {
		key, err := b.stack.NewKey(ctx, b.account)
		if err != nil {
			return nil, err
		}
		api.keys = append(api.keys, key)
	}
	plain := api
	plain.address = address
	if err := sameRecord(api, plain); err != nil {
		return nil, err
	}
	r, err := compareRates(ctx, b.runs*slicesPerRun, api, plain)
	if err != nil {
		return nil, err
	}
	return []row{
		{
			measure: fmt.Sprintf("GET /databases/{id}, %d clients, %d keys, against a handler by hand", readClients, readKeys),
			ours:    fmt.Sprintf("%.0f/s", r.ours), baseline: fmt.Sprintf("%.0f/s", r.baseline), ratio: fmt.Sprintf("%.2f", r.ratio),
			limit: "≥ 0.60", met: r.ratio >= 0.6,
		},
		{
			measure: "  metadata statements for each request, by the server's log", ours: fmt.Sprintf("%.2f", each),
			limit: fmt.Sprintf("≤ %d", mostStatement), met: each <= mostStatement+0.05, // what the host does beside the requests
		},
	}, nil
}

// startPlain starts this program again as the bare handler.
func (b *bench) startPlain(ctx context.Context) (address string, end func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, program, plainHandler)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Wait() // it has done its work
	}
	err = json.NewEncoder(in).Encode(plainTask{MetadataURL: b.stack.MetadataURL(), Connections: plainConnections})
	if err == nil {
		_, err = fmt.Fscanln(out, &address)
	}
	if err != nil {
		end()
		return "", nil, fmt.Errorf("the bare handler did not start: %w", err)
	}
	return address, end, nil
}

// compareRates measures both in turn, in short slices, so that whatever else the machine does hits both alike. It returns the
// median rates, and the median of the ratios of neighbours.
func compareRates(ctx context.Context, slices int, ours, baseline target) (r rates, err error) {
	var all [2][]float64
	var ratios []float64
	for n := range slices + 1 {
		var pair [2]float64
		for i := range pair {
			which := (i + n) % 2
			if pair[which], err = []target{ours, baseline}[which].rate(ctx, readClients, readSlice); err != nil {
				return r, err
			}
		}
		if n == 0 {
			continue // warms up
		}
		ratios = append(ratios, pair[0]/pair[1])
		for i := range pair {
			all[i] = append(all[i], pair[i])
		}
	}
	return rates{median(all[0]), median(all[1]), median(ratios)}, nil
}

// rates are requests a second, and how they relate.
type rates struct{ ours, baseline, ratio float64 }
