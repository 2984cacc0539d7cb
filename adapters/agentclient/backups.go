package agentclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Backup implements ports.BackupAgent.
func (c *client) Backup(ctx context.Context, f ports.Fence, spec ports.BackupSpec) (ports.BackupReport, error) {
	var report protocol.BackupReport
	err := c.order(ctx, command{
		kind: protocol.RunBackup, fence: f, generation: 1,
		resource: protocol.DatabaseResource(string(spec.DatabaseID)),
		payload: protocol.BackupPayload{
			DatabaseID: string(spec.DatabaseID), Filename: spec.Filename, Verify: spec.Verify,
		},
	}, &report)
	if err != nil {
		return ports.BackupReport{}, err
	}
	return readReport(report)
}

// readReport translates a report. A state that this version does not know leaves the outcome unknown.
func readReport(r protocol.BackupReport) (ports.BackupReport, error) {
	state, known := backupStates[r.State]
	if !known {
		return ports.BackupReport{}, unknown(errors.New("its backup report has a state that is not in the protocol"))
	}
	reason, known := reasons[r.Reason]
	if !known && state == ports.BackupFailed {
		reason = ports.ReasonFailed
	}
	return ports.BackupReport{
		State: state, Stage: r.Stage, Progress: min(max(r.Progress, 0), 100), Reason: reason, Message: r.Message,
		SizeBytes: r.SizeBytes, ChecksumSHA256: r.ChecksumSHA256, VerifiedAt: r.VerifiedAt, RoleManifest: r.RoleManifest,
	}, nil
}

var backupStates = map[string]ports.BackupState{
	protocol.BackupRunning:     ports.BackupRunning,
	protocol.BackupDone:        ports.BackupDone,
	protocol.BackupNotVerified: ports.BackupNotVerified,
	protocol.BackupFailed:      ports.BackupFailed,
}

// RoomForBackup implements ports.BackupAgent.
func (c *client) RoomForBackup(ctx context.Context, db id.DatabaseID) error {
	return c.exchange(ctx, route{method: http.MethodGet, path: databasePath(db) + "/backups/room", later: true}, nil, nil)
}

// DeleteBackup implements ports.BackupAgent.
func (c *client) DeleteBackup(ctx context.Context, db id.DatabaseID, filename string) error {
	return c.exchange(ctx, route{method: http.MethodDelete, path: backupPath(db, filename), later: true}, nil, nil)
}

// OpenBackup implements ports.BackupAgent. The file is streamed: the end of ctx closes it, and a truncated file ends in an
// error, never in io.EOF. So does one of which nothing comes for Options.DownloadWait.
func (c *client) OpenBackup(ctx context.Context, db id.DatabaseID, filename string) (ports.BackupFile, error) {
	r := route{method: http.MethodGet, path: backupPath(db, filename), later: true}
	resp, err := c.send(ctx, c.downloads, r.method, r.path, nil)
	if err != nil {
		return ports.BackupFile{}, err
	}
	switch {
	case resp.StatusCode != http.StatusOK:
		err = r.refusal(resp)
	case resp.ContentLength < 0:
		err = unknown(errors.New("it does not say how long the file is"))
	default:
		return ports.BackupFile{Body: resp.Body, Size: resp.ContentLength}, nil
	}
	resp.Body.Close()
	return ports.BackupFile{}, err
}

func databasePath(db id.DatabaseID) string { return "/v1/databases/" + url.PathEscape(string(db)) }

func backupPath(db id.DatabaseID, filename string) string {
	return databasePath(db) + "/backups/" + url.PathEscape(filename)
}
