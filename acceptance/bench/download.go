package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/core/backup"
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
	text, err := b.withBackup(ctx)
	if err != nil {
		return nil, err
	}
	processes := []struct {
		name string
		pid  int
	}{{"API", b.api.Pid()}, {"agent", b.agent.Pid()}}
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
		table = append(table, memoryRows(processes[i].name, used, text.last.SizeBytes)...)
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
	want := text.last
	file, err := c.Backups.Download(ctx, text.ID, backup.Filename(want.Filename))
	if err != nil {
		return err
	}
	var body io.Reader = file
	if slowly {
		body = &slow{from: file, began: time.Now()}
	}
	n, err := io.Copy(io.Discard, body)
	err = errors.Join(err, file.Close())
	if err == nil && (n != want.SizeBytes || file.SHA256() != want.ChecksumSHA256) {
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
