package stack

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// Client is a client of an API that never repeats a call: whoever measures or breaks something wants to know of each answer.
// With nil, it uses http.DefaultClient.
func Client(url, key string, through *http.Client) (*apiclient.Client, error) {
	return apiclient.New(apiclient.Config{URL: url, Key: key, HTTP: through, Attempts: 1})
}

// backupPause is between two looks at a backup.
const backupPause = 50 * time.Millisecond

// BackUp takes a backup, which must succeed.
func BackUp(ctx context.Context, c *apiclient.Client, database id.DatabaseID) (operation.BackupResult, error) {
	started, err := c.Backups.Start(ctx, database)
	if err != nil {
		return operation.BackupResult{}, err
	}
	ended, err := c.Operations.Await(ctx, started.Operation.ID, backupPause)
	if err == nil && ended.Status != operation.Succeeded {
		err = fmt.Errorf("the backup is %s: %+v", ended.Status, ended.Error)
	}
	if err != nil {
		return operation.BackupResult{}, err
	}
	return operation.Decode[operation.BackupResult](*ended.Result)
}
