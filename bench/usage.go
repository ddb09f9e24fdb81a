package bench

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// ProcessorTime is the time that all threads of this process have spent on processors, in user and in
// system mode.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // the arguments are constants: it cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// PeakMemory is the largest resident set of this process since it started or since ResetPeakMemory, in
// bytes.
func PeakMemory() int64 {
	if kib := procField("/proc/self/status", "VmHWM:"); kib > 0 {
		return kib << 10
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss << 10
}

// ResetPeakMemory starts PeakMemory anew where the system can do that (Linux, see proc(5),
// clear_refs), and tells whether it could.
func ResetPeakMemory() bool {
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil
}

// DeviceReads is the number of bytes that this process had read from storage devices, 0 where the
// system does not tell.
func DeviceReads() int64 { return procField("/proc/self/io", "read_bytes:") }

// procField reads the number behind a label of a file in /proc, 0 when there is none.
func procField(path, label string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	_, text, found := bytes.Cut(text, []byte(label))
	if !found {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// PeakMemoryOf is PeakMemory of another process, 0 where the system does not tell.
func PeakMemoryOf(pid int) int64 {
	return max(0, procField("/proc/"+strconv.Itoa(pid)+"/status", "VmHWM:")<<10)
}

// MemoryOf is the resident set of a process, 0 where the system does not tell.
func MemoryOf(pid int) int64 {
	return max(0, procField("/proc/"+strconv.Itoa(pid)+"/status", "VmRSS:")<<10)
}

// clockTick is the unit of times in /proc/PID/stat on all systems that Go supports (see proc(5), USER_HZ).
const clockTick = 10 * time.Millisecond

// ProcessorTimeOf is ProcessorTime of another process, 0 where the system does not tell.
func ProcessorTimeOf(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, text, _ = bytes.Cut(text, []byte(") ")) // behind the name of the program
	fields := bytes.Fields(text)
	var ticks int64
	for _, i := range []int{11, 12} { // utime and stime
		if i < len(fields) {
			n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * clockTick
}
