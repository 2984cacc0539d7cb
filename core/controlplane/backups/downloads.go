package backups

import (
	"io"

	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/slot"
)

func newDownloads(c plane.Config) *plane.Gate {
	return plane.NewGate(
		slot.Limits{PerAccount: c.DownloadsPerAccount, Share: c.DownloadsPerAccount, PerServer: c.DownloadsPerServer}, c.DownloadWait,
		"the account has too many downloads open", "too many downloads from this database server at the moment")
}

// slottedBody is the content of a file; its end gives back the slot.
type slottedBody struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (b slottedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
