package health

import (
	"context"
	"math"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/health"
)

// Host is the machine that the agent runs on. DataDir lies on the file system that holds the databases.
type Host struct{ DataDir string }

// Disk returns the figures of the file system; free is what an unprivileged user may still write.
func (h Host) Disk(ctx context.Context) (protocol.ServerDisk, error) {
	u, err := disk.UsageWithContext(ctx, h.DataDir)
	if err != nil {
		return protocol.ServerDisk{}, err
	}
	total, used, free := signed(u.Total), signed(u.Used), signed(u.Free)
	return protocol.ServerDisk{
		TotalBytes: total, TotalPretty: health.Pretty(total),
		UsedBytes: used, UsedPretty: health.Pretty(used),
		FreeBytes: free, FreePretty: health.Pretty(free),
		UsedPercent: health.Percent(used, total),
	}, nil
}

// Memory returns the figures of main memory.
func (Host) Memory(ctx context.Context) (*protocol.Memory, error) {
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return nil, err
	}
	total, used, available := signed(m.Total), signed(m.Used), signed(m.Available)
	return &protocol.Memory{
		TotalBytes: total, TotalPretty: health.Pretty(total),
		UsedBytes: used, UsedPretty: health.Pretty(used),
		AvailableBytes: available, AvailablePretty: health.Pretty(available),
		UsedPercent: health.Percent(used, total),
	}, nil
}

// Load returns the load averages.
func (Host) Load(ctx context.Context) (*protocol.Load, error) {
	l, err := load.AvgWithContext(ctx)
	if err != nil {
		return nil, err
	}
	return &protocol.Load{OneMinute: l.Load1, FiveMinutes: l.Load5, FifteenMinutes: l.Load15}, nil
}

func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
