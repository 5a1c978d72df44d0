// Reads a range of the log with go-mysql's BinlogSyncer, rows decoded, and tells its CPU as the other clients do
// (see ../README.md).
package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"syscall"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

const tenant = 2 // the column that is summed up

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func tell(stage string, rows int, sum int64) {
	fmt.Printf("{\"stage\":\"%s\",\"rows\":%d,\"sum\":%d,\"cpuSeconds\":%.6f}\n", stage, rows, sum, cpuSeconds())
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	args := os.Args[1:] // flavor host port user password file offset rows
	wanted := number(args[7])
	tell("start", 0, 0)
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 3_900_000_001,
		Flavor:   args[0],
		Host:     args[1],
		Port:     uint16(number(args[2])),
		User:     args[3],
		Password: args[4],
		Logger:   slog.New(slog.DiscardHandler),
	})
	streamer, err := syncer.StartSync(mysql.Position{Name: args[5], Pos: uint32(number(args[6]))})
	if err != nil {
		panic(err)
	}
	rows, sum, quarter := 0, int64(0), false
	for rows < wanted {
		event, err := streamer.GetEvent(context.Background())
		if err != nil {
			panic(err)
		}
		changed, isRows := event.Event.(*replication.RowsEvent)
		if !isRows {
			continue
		}
		for _, row := range changed.Rows {
			sum += int64(row[tenant].(int32))
		}
		rows += len(changed.Rows)
		if !quarter && rows >= wanted/4 {
			quarter = true
			tell("quarter", rows, sum)
		}
	}
	tell("end", rows, sum)
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until it is measured
}
