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
	readClients  = 8
	readSlice    = 500 * time.Millisecond
	slicesPerRun = 6
	countedReads = 100
	// mostStatements has room for a lease of the key's bucket, and for what the host does beside the requests.
	mostStatements = countedReads + 5
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
	byHand, end, err := b.startPlain(ctx, "")
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
	plain.address = byHand.address
	if err := sameRecord(api, plain); err != nil {
		return nil, err
	}
	r, err := compareRates(ctx, b.runs*slicesPerRun, api, plain)
	if err != nil {
		return nil, err
	}
	return []row{
		{
			fmt.Sprintf("GET /databases/{id}, %d clients, %d keys, against a handler by hand", readClients, readKeys),
			rate(r.ours), rate(r.baseline), r.ratio, "≥ 0.60", r.ratio >= 0.6,
		},
		{
			measure: fmt.Sprintf("  metadata statements for %d requests, by the server's log", countedReads), ours: number(sent),
			baseline: number(plainStatements * countedReads), limit: "≤ " + number(mostStatements).String(), met: sent <= mostStatements,
		},
	}, nil
}

// plainServer is the handler that was written by hand.
type plainServer struct {
	address string
	pid     int
}

// startPlain starts this program again as the bare handler, which serves a file as every backup.
func (b *bench) startPlain(ctx context.Context, file string) (s plainServer, end func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return s, nil, err
	}
	cmd := exec.CommandContext(ctx, program, plainHandler)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return s, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return s, nil, err
	}
	if err := cmd.Start(); err != nil {
		return s, nil, err
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Wait() // it has done its work
	}
	err = json.NewEncoder(in).Encode(plainTask{b.stack.MetadataURL(), plainConnections, file})
	if err == nil {
		_, err = fmt.Fscanln(out, &s.address)
	}
	if err != nil {
		end()
		return s, nil, fmt.Errorf("the bare handler did not start: %w", err)
	}
	s.pid = cmd.Process.Pid
	return s, end, nil
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
