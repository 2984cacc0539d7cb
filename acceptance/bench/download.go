package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// measureDownload downloads the file of part (c) several times at once, and once slowly, and watches the memory of API and agent,
// and of a handler that serves the file by hand.
func measureDownload(ctx context.Context, b *bench) ([]row, error) {
	text, err := b.withBackup(ctx)
	if err != nil {
		return nil, err
	}
	file := b.path("served.sql.gz")
	if err := b.client.save(ctx, text, file); err != nil {
		return nil, err
	}
	plain, end, err := b.startPlain(ctx, file)
	if err != nil {
		return nil, err
	}
	defer end()
	byHand, err := newClient("http://"+plain.address, b.account.Key)
	if err != nil {
		return nil, err
	}
	var used []usage
	for _, of := range []struct {
		client
		pids []int
	}{{b.client, []int{b.api.Pid(), b.agent.Pid()}}, {byHand, []int{plain.pid}}} {
		now, err := of.downloadAtOnce(ctx, text, of.pids)
		if err != nil {
			return nil, err
		}
		used = append(used, now...)
	}
	var rows []row
	for i, name := range []string{"API", "agent"} {
		what := fmt.Sprintf("peak memory of the %s, %d + 1 slow downloads of %s, against http.ServeFile", name, fastDownloads,
			amount(text.last.SizeBytes))
		rows = append(rows, below(what, used[i].peak, used[2].peak, mostMemory),
			below("  its growth from the first third to the last", used[i].late-used[i].early, used[2].late-used[2].early, mostGrowth))
	}
	return rows, os.Remove(file)
}

// downloadAtOnce watches the memory of processes. It holds every byte against the checksum of the operation.
func (c client) downloadAtOnce(ctx context.Context, text *textDatabase, pids []int) (used []usage, err error) {
	var watched []*memory
	for _, pid := range pids {
		m, err := watch(pid)
		if err != nil {
			return nil, err
		}
		watched = append(watched, m)
	}
	group, ctx := errgroup.WithContext(ctx)
	for n := range fastDownloads + 1 {
		group.Go(func() error { return c.download(ctx, text, n == 0) })
	}
	err = group.Wait()
	for _, m := range watched {
		now, failed := m.end()
		used, err = append(used, now), errors.Join(err, failed)
	}
	return used, err
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
