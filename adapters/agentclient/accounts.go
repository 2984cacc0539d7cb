package agentclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/ports"
)

// accountsAtOnce keeps a request well below the most that an agent reads: each takes some 110 bytes.
const accountsAtOnce = 2000

// SetAccounts implements ports.DatabaseAgent. What was sent before an error stays.
func (c *client) SetAccounts(ctx context.Context, list []ports.DatabaseAccount) error {
	for part := range slices.Chunk(list, accountsAtOnce) {
		accounts := protocol.Accounts{Databases: make([]protocol.DatabaseAccount, 0, len(part))}
		for _, d := range part {
			accounts.Databases = append(accounts.Databases,
				protocol.DatabaseAccount{DatabaseID: string(d.DatabaseID), AccountID: string(d.AccountID)})
		}
		body, err := json.Marshal(accounts)
		if err != nil {
			return fmt.Errorf("%w: %w", ports.ErrAgentUnreachable, err)
		}
		if err := c.exchange(ctx, route{method: http.MethodPut, path: "/v1/accounts", later: true}, body, nil); err != nil {
			return err
		}
	}
	return nil
}
