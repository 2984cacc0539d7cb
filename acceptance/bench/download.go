package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	fastDownloads = 4
	slowRate      = 8 << 20 // bytes a second
	mostMemory    = 100 * mebibyte
	// mostGrowth is how much more memory the end of the downloads may need than their beginning.
	mostGrowth = 8 * mebibyte
)

// measureDownload downloads the file of part (c) several times at once, and once slowly, and watches the memory of API and agent.
func measureDownload(ctx context.Context, b *bench) ([]row, error) {
	text, err := b.withText(ctx)
	if err != nil {
		return nil, err
	}
	if text.last == nil {
		done, err := b.client.backup(ctx, text.ID)
		if err != nil {
			return nil, err
		}
		text.last = &done
	}
	processes := []struct {
		name string
		pid  int
	}{{"API", b.api.Pid()}, {"agent", b.stack.FirstAgent().Pid()}}
	var watched []*memory
	for _, p := range processes {
		m, err := watch(p.pid)
		if err != nil {
			return nil, err
		}
		watched = append(watched, m)
	}
	failed := b.downloadAtOnce(ctx, text)
	var table []row
	for i, m := range watched {
		used, err := m.end()
		failed = errors.Join(failed, err)
		table = append(table, memoryRows(processes[i].name, used, text.last.Result.SizeBytes)...)
	}
	return table, failed
}

func memoryRows(name string, used usage, size int64) []row {
	growth := used.late - used.early
	return []row{
		{
			measure: fmt.Sprintf("peak memory of the %s, %d + 1 slow downloads of %s", name, fastDownloads, amount(size)),
			ours:    amount(used.peak).String(), limit: "< " + amount(mostMemory).String(), met: used.peak < mostMemory,
		},
		{
			measure: "  its growth from the first third to the last", ours: amount(growth).String(), baseline: amount(used.early).String(),
			limit: "≤ " + amount(mostGrowth).String(), met: growth <= mostGrowth,
		},
	}
}

// downloadAtOnce holds every byte against the checksum of the operation.
func (b *bench) downloadAtOnce(ctx context.Context, text *textDatabase) error {
	group, ctx := errgroup.WithContext(ctx)
	for n := range fastDownloads + 1 {
		group.Go(func() error { return b.client.download(ctx, text, n == 0) })
	}
	return group.Wait()
}

func (c client) download(ctx context.Context, text *textDatabase, slowly bool) error {
	want := text.last.Result
	response, err := c.send(ctx, http.MethodGet, "/databases/"+text.ID+"/backups/"+want.Filename, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("download: %s", response.Status)
	}
	var body io.Reader = response.Body
	if slowly {
		body = &slow{from: body, began: time.Now()}
	}
	sum := sha256.New()
	n, err := io.Copy(sum, body)
	if err == nil && (n != want.SizeBytes || hex.EncodeToString(sum.Sum(nil)) != want.ChecksumSHA256) {
		err = fmt.Errorf("download: %d bytes that are not those of the backup", n)
	}
	return err
}

// slow reads at slowRate.
type slow struct {
	from  io.Reader
	began time.Time
	bytes int64
}

// Read implements io.Reader.
func (s *slow) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.bytes += int64(n)
	time.Sleep(time.Duration(float64(s.bytes)/slowRate*float64(time.Second)) - time.Since(s.began))
	return n, err
}
