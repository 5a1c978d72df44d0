import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Reads a range of the log with the client that Debezium is built on, and tells its CPU as the other clients do (see ../README.md).
 */
public final class LogReader {
  /** The column that is summed up. */
  private static final int TENANT = 2;
  /** USER_HZ: what /proc counts in. */
  private static final double TICKS_PER_SECOND = 100;

  private final int wanted;
  private int rows;
  private long sum;
  private boolean quarter;

  private LogReader(int wanted) {
    this.wanted = wanted;
  }

  public static void main(String[] args) throws Exception { // flavor host port user password file offset rows
    var reader = new LogReader(Integer.parseInt(args[7]));
    reader.tell("start");
    var client = new BinaryLogClient(args[1], Integer.parseInt(args[2]), args[3], args[4]);
    client.setServerId(3_900_000_002L);
    client.setBinlogFilename(args[5]);
    client.setBinlogPosition(Long.parseLong(args[6]));
    client.registerEventListener(event -> {
      if (event.getData() instanceof WriteRowsEventData data) reader.count(data);
    });
    client.connect();
  }

  private void count(WriteRowsEventData data) {
    if (rows >= wanted) return;
    for (Serializable[] row : data.getRows()) sum += (Integer) row[TENANT];
    rows += data.getRows().size();
    if (!quarter && rows >= wanted / 4) {
      quarter = true;
      tell("quarter");
    }
    if (rows < wanted) return;
    tell("end");
    try {
      System.in.read(); // until it is measured
    } catch (IOException error) {
      // as good as the end of it
    }
    Runtime.getRuntime().halt(0);
  }

  private void tell(String stage) {
    System.out.printf(Locale.ROOT, "{\"stage\":\"%s\",\"rows\":%d,\"sum\":%d,\"cpuSeconds\":%.2f}%n", stage, rows, sum, cpuSeconds());
  }

  /** Of all threads, the collector's and the compiler's too. */
  private static double cpuSeconds() {
    try {
      String stat = Files.readString(Path.of("/proc/self/stat"));
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      return (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) / TICKS_PER_SECOND;
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }
}
