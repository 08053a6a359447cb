import java.util.Arrays;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** Makes a table of several regions; the arguments are its name, its family, and where it is split. */
public class SplitTable {
    public static void main(String[] arguments) throws Exception {
        byte[][] splits =
                Arrays.stream(arguments).skip(2).map(Bytes::toBytes).toArray(byte[][]::new);
        try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
                Admin admin = connection.getAdmin()) {
            admin.createTable(
                    TableDescriptorBuilder.newBuilder(TableName.valueOf(arguments[0]))
                            .setColumnFamily(ColumnFamilyDescriptorBuilder.of(arguments[1]))
                            .build(),
                    splits);
        }
    }
}
