package admin

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// Who waits for what is made anew is told how many are left, and why one of them failed. One that was never ordered is not asked
// for.
func TestWaitingForWhatIsMadeAnew(t *testing.T) {
	var told bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetErr(&told)
	asked := map[id.OperationID]int{}
	ends := map[id.OperationID]operation.Operation{
		"whole": {ID: "whole", Status: operation.Succeeded},
		"broken": {
			ID: "broken", Status: operation.Failed, ErrorCode: fault.BackupNotVerified, ErrorText: "it did not become equal",
		},
	}
	look := func(_ context.Context, of id.OperationID) (operation.Operation, error) {
		end, known := ends[of]
		if asked[of]++; !known {
			return end, errors.New("it was never ordered")
		}
		if asked[of] == 1 {
			return operation.Operation{ID: of, Status: operation.Running}, nil
		}
		return end, nil
	}
	refused := errors.New("it has no room")
	list := []operator.Recovering{
		{Operation: operation.Operation{ID: "whole"}}, {Err: refused}, {Operation: operation.Operation{ID: "broken"}},
	}
	if err := waitRebuilt(t.Context(), cmd, look, list); err != nil {
		t.Fatal(err)
	}
	if list[0].Err != nil || !errors.Is(list[1].Err, refused) || list[2].Err == nil {
		t.Errorf("they end as %v, %v and %v", list[0].Err, list[1].Err, list[2].Err)
	}
	row := recoveringRow(list[2])
	why, _ := row.named("why").(string)
	if !strings.Contains(why, "it did not become equal") || row.named("status") != string(operation.Failed) {
		t.Errorf("shown: %v", row)
	}
	if told.String() != "2 left\n" {
		t.Errorf("told: %q", &told)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	list = []operator.Recovering{{Operation: operation.Operation{ID: "slow"}}}
	slow := func(context.Context, id.OperationID) (operation.Operation, error) {
		return operation.Operation{ID: "slow"}, nil
	}
	if err := waitRebuilt(ended, cmd, slow, list); !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ends with %v", err)
	}
}
