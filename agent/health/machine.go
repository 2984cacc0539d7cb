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

// Disk returns the figures of the file system.
func (h Host) Disk(ctx context.Context) (protocol.ServerDisk, error) {
	u, err := UsageOf(ctx, h.DataDir)
	if err != nil {
		return protocol.ServerDisk{}, err
	}
	return protocol.ServerDisk{
		TotalBytes: u.Size, TotalPretty: health.Pretty(u.Size),
		UsedBytes: u.used, UsedPretty: health.Pretty(u.used),
		FreeBytes: u.Free, FreePretty: health.Pretty(u.Free),
		UsedPercent: health.Percent(u.used, u.Size),
	}, nil
}

// Usage is how full a file system is: bytes, and files. Free is what an unprivileged user may still write.
type Usage struct{ Size, used, Free, Files, FilesFree int64 }

// UsageOf asks the file system that holds the folder.
func UsageOf(ctx context.Context, folder string) (Usage, error) {
	u, err := disk.UsageWithContext(ctx, folder)
	if err != nil {
		return Usage{}, err
	}
	return Usage{signed(u.Total), signed(u.Used), signed(u.Free), signed(u.InodesTotal), signed(u.InodesFree)}, nil
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
