import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.master.HMaster;
import org.apache.hadoop.hbase.thrift.ThriftServer;

/** HBase's master, its region server and its Thrift gateway in one JVM; the argument is the port. */
public class OneHBase {
    public static void main(String[] arguments) throws Exception {
        new Thread(() -> HMaster.main(new String[] {"start"}), "master").start();
        awaitMaster();
        ThriftServer.main(
                new String[] {"start", "-p", arguments[0], "-b", "127.0.0.1", "--infoport", "-1"});
    }

    /** Returns when the tables are served; whoever started the JVM ends it if that never is. */
    private static void awaitMaster() throws InterruptedException {
        while (true) {
            try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
                    Admin admin = connection.getAdmin()) {
                admin.listNamespaceDescriptors();
                return;
            } catch (java.io.IOException notYet) {
                Thread.sleep(100);
            }
        }
    }
}
